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

namespace {

struct Child {
    size_t parent;  // within the track
    int64_t start, end;

    bool operator<(const Child& other) const {
        return parent != other.parent ? parent < other.parent : start < other.start;
    }
};

// Where the children are longer together than their parent, counts their overlaps once.
void limit_to_union(const TrackRows& track, std::vector<int64_t>* children_ns) {
    std::vector<Child> children;
    for (size_t i = 0; i < track.n; ++i) {
        const size_t parent = track.parent[i] - track.first;
        if (parent == i || (*children_ns)[parent] <= track.dur_ns[parent]) continue;
        children.push_back({parent, track.start_ns[i], track.start_ns[i] + track.dur_ns[i]});
    }
    std::sort(children.begin(), children.end());
    int64_t covered_until = 0;
    for (size_t i = 0; i < children.size(); ++i) {
        const Child& child = children[i];
        if (i == 0 || children[i - 1].parent != child.parent) {
            (*children_ns)[child.parent] = 0;
            covered_until = child.start;
        }
        (*children_ns)[child.parent] +=
            std::max<int64_t>(0, child.end - std::max(child.start, covered_until));
        covered_until = std::max(covered_until, child.end);
    }
}

}  // namespace

bool differing_self_times(const TrackRows& track, SelfTimes* out) {
    std::vector<int64_t> children_ns(track.n, 0);
    for (size_t i = 0; i < track.n; ++i) {
        const size_t parent = size_t{track.parent[i]} - track.first;
        if (parent >= track.n) return false;
        if (parent != i) children_ns[parent] += track.dur_ns[i];
    }
    limit_to_union(track, &children_ns);
    for (size_t i = 0; i < track.n; ++i) {
        const int64_t self_ns = track.dur_ns[i] - children_ns[i];
        if (self_ns == track.self_ns[i]) continue;
        out->row.push_back(track.first + static_cast<uint32_t>(i));
        out->self_ns.push_back(self_ns);
    }
    return true;
}

}  // namespace trnscope
