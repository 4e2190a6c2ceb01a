// Pairs the ends of flows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

constexpr uint8_t kFlowStart = 0, kFlowStep = 1;  // any other phase ends a flow

// Ends of flows, and the slice that each lies in, if any.
struct FlowEndColumns {
    const uint64_t* flow_id;
    const uint32_t* kind;
    const uint8_t* phase;
    const int64_t* ts_ns;
    const uint8_t* found;
    const uint32_t* slice;
    size_t n;
};

struct FlowPairs {
    std::vector<uint32_t> kind, slice_out, slice_in;
};

// Links each step or end to the latest start or step of its (kind, id) before it, by time, phase
// and file order; one that comes before all of these is linked from the first start. Pairs are
// ordered by kind, id and the later end. Ends that lie in no slice link nothing.
FlowPairs pair_flows(const FlowEndColumns& ends);

}  // namespace trnscope
