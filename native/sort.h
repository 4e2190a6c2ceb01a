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

// Sorts indices by their keys; stable.
void sort_by_key(const uint32_t* keys, std::vector<uint32_t>* order);
void sort_by_key(const uint64_t* keys, std::vector<uint32_t>* order);

// Sorts event indices by start rising, then duration falling, then index. Time is
// O(n log runs), where runs are the sorted stretches that the input already has.
void sort_slices(const int64_t* start, const int64_t* dur, uint32_t* events, size_t n);

}  // namespace trnscope
