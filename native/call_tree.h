// The tree of calls of one thread, as torch's table builds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

struct CallTree {
    std::vector<uint32_t> parent;  // by input row; a root holds its own
    // Duration less the durations of all children, also where children overlap. Where that is
    // below zero: the time that no child covers.
    std::vector<int64_t> self_ns;
};

// Nests by the rule of track_index.h. start_ns/dur_ns: n values, dur_ns >= 0.
CallTree nest_calls(const int64_t* start_ns, const int64_t* dur_ns, size_t n);

// Slices of one track, which are rows first ... first + n - 1 of their table; all are calls.
struct TrackRows {
    const uint32_t* parent;  // table rows; a root holds its own
    const int64_t* start_ns;
    const int64_t* dur_ns;
    const int64_t* self_ns;  // overlaps taken once
    uint32_t first;
    size_t n;
};

struct SelfTimes {
    std::vector<uint32_t> row;  // rising
    std::vector<int64_t> self_ns;
};

// The rows whose own time by the rule of CallTree is another than self_ns. False where a parent
// is no row of the track.
bool differing_self_times(const TrackRows& track, SelfTimes* out);

}  // namespace trnscope
