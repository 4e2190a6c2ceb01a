// Stable index sorts for columns: counting, radix, and a merge of natural runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

// Indices 0..n-1 grouped by key (keys < num_groups), in input order within a group.
// `first` gets num_groups + 1 offsets.
std::vector<uint32_t> group_order(const uint32_t* keys, size_t n, size_t num_groups,
                                  std::vector<int64_t>* first);

// Indices that sort the keys; stable.
std::vector<uint32_t> argsort_u32(const uint32_t* keys, size_t n);

// Indices that sort slices by start rising, then duration falling, then input order.
// Time is O(n log runs), where runs are the sorted stretches that the input already has.
std::vector<uint32_t> slice_order(const int64_t* start, const int64_t* dur, size_t n);

}  // namespace trnscope
