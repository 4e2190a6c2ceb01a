// Finds the runtime call and the op behind each slice of device work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

// An attribute that holds ids: slices rising. Id 0 stands for none.
struct IdColumn {
    const uint32_t* slice;
    const uint64_t* value;
    size_t n;
};

struct LaunchInput {
    const uint8_t* kind;  // by slice
    const uint32_t* parent;
    size_t num_slices;
    std::vector<uint8_t> device_kinds;
    uint8_t call_kind;
    uint8_t op_kind;
    IdColumn correlation, external_id;
    const uint32_t* flow_out;  // slices at both ends of each flow
    const uint32_t* flow_in;
    size_t num_flows;
};

// One row for each slice of device work; slices are 0 where there is none.
struct LaunchRows {
    std::vector<uint32_t> device_slice;
    std::vector<uint8_t> has_launch;
    std::vector<uint32_t> launch_slice;
    std::vector<uint8_t> has_op;
    std::vector<uint32_t> op_slice;
};

// The call is the first one with the same correlation id, else the one that the first flow into
// the work comes from, else, for work without a correlation id, the first one with its external
// id. The op is the innermost around the call, else the first with the work's external id. All
// slices in the input must be below num_slices. Throws std::invalid_argument where parents go
// round in a circle.
LaunchRows find_launches(const LaunchInput& in);

}  // namespace trnscope
