#include "flow_pairs.h"

#include <algorithm>
#include <tuple>

#include "sort.h"

namespace trnscope {
namespace {

std::vector<uint32_t> rows_in_slices(const FlowEndColumns& ends) {
    std::vector<uint32_t> rows;
    rows.reserve(ends.n);
    for (size_t i = 0; i < ends.n; ++i) {
        if (ends.found[i]) rows.push_back(static_cast<uint32_t>(i));
    }
    return rows;
}

// Links the ends of one flow; first..last are its rows in order.
void link_flow(const FlowEndColumns& ends, const uint32_t* first, const uint32_t* last,
               FlowPairs* out) {
    const uint32_t* start =
        std::find_if(first, last, [&](uint32_t row) { return ends.phase[row] == kFlowStart; });
    const uint32_t* source = start;  // until something opened: the first start, which is later
    bool opened = false;
    for (const uint32_t* row = first; row != last; ++row) {
        const uint8_t phase = ends.phase[*row];
        if (phase != kFlowStart && (opened || start != last)) {
            out->kind.push_back(ends.kind[*row]);
            out->slice_out.push_back(ends.slice[*source]);
            out->slice_in.push_back(ends.slice[*row]);
        }
        if (phase != kFlowStart && phase != kFlowStep) continue;
        source = row;
        opened = true;
    }
}

}  // namespace

FlowPairs pair_flows(const FlowEndColumns& ends) {
    std::vector<uint32_t> rows = rows_in_slices(ends);
    sort_by_key(ends.flow_id, &rows);
    sort_by_key(ends.kind, &rows);
    const auto same_flow = [&](uint32_t a, uint32_t b) {
        return ends.kind[a] == ends.kind[b] && ends.flow_id[a] == ends.flow_id[b];
    };
    const auto before = [&](uint32_t a, uint32_t b) {
        return std::tie(ends.ts_ns[a], ends.phase[a]) < std::tie(ends.ts_ns[b], ends.phase[b]);
    };
    FlowPairs pairs;
    uint32_t* const end = rows.data() + rows.size();
    for (uint32_t *first = rows.data(), *last; first != end; first = last) {
        last = std::find_if(first, end, [&](uint32_t row) { return !same_flow(*first, row); });
        if (!std::is_sorted(first, last, before)) std::stable_sort(first, last, before);
        link_flow(ends, first, last, &pairs);
    }
    return pairs;
}

}  // namespace trnscope
