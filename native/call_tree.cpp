#include "call_tree.h"

#include <algorithm>
#include <numeric>

#include "sort.h"

namespace trnscope {
namespace {

struct Open {
    int64_t end;
    int64_t covered_until;  // by children so far
    uint32_t row;
};

}  // namespace

CallTree nest_calls(const int64_t* start_ns, const int64_t* dur_ns, size_t n) {
    CallTree tree{std::vector<uint32_t>(n), std::vector<int64_t>(dur_ns, dur_ns + n)};
    std::vector<int64_t> uncovered(dur_ns, dur_ns + n);
    std::vector<Open> stack;
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    sort_slices(start_ns, dur_ns, order.data(), n);
    for (uint32_t row : order) {
        const int64_t from = start_ns[row], to = from + dur_ns[row];
        while (!stack.empty() && (from >= stack.back().end || to > stack.back().end)) {
            stack.pop_back();
        }
        tree.parent[row] = stack.empty() ? row : stack.back().row;
        if (!stack.empty()) {
            Open& above = stack.back();
            tree.self_ns[above.row] -= to - from;
            uncovered[above.row] -= std::max<int64_t>(0, to - std::max(from, above.covered_until));
            above.covered_until = std::max(above.covered_until, to);
        }
        stack.push_back({to, from, row});
    }
    for (size_t row = 0; row < n; ++row) {
        if (tree.self_ns[row] < 0) tree.self_ns[row] = uncovered[row];
    }
    return tree;
}

}  // namespace trnscope
