// The zoom pyramid: each long lane once more, summarised per bucket of 2^(10 + 2k) ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

constexpr int kPyramidBaseShift = 10;      // level 0 has buckets of 1,024 ns
constexpr int kPyramidLevelShift = 2;      // each level is 4 times as coarse
constexpr int kPyramidLevels = 20;         // the last has buckets of 2^48 ns, over three days
constexpr int64_t kPyramidMinRows = 4096;  // a shorter lane is read as it is

// A lane is stored at a level only where that takes at most a quarter of its rows. Rows are
// ordered by lane, level, bucket.
struct Pyramid {
    std::vector<uint8_t> level;
    std::vector<uint32_t> lane;
    std::vector<int64_t> start;     // first start in the bucket, ns
    std::vector<int64_t> end;       // last end of a slice that starts in the bucket, ns
    std::vector<uint32_t> count;    // slices
    std::vector<int64_t> busy;      // sum of their durations, ns
    std::vector<uint32_t> longest;  // slice id of the longest
};

// Slices of lane l are rows first[l] .. first[l] + count[l], by rising start. release_mapped: the
// columns are mapped files, whose pages are given back lane by lane.
Pyramid build_pyramid(const int64_t* first, const int64_t* count, size_t num_lanes,
                      const int64_t* start, const int64_t* dur, bool release_mapped);

}  // namespace trnscope
