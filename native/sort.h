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

// Rising distinct keys and the position of each one's last occurrence; false if a key is not
// below num_keys. Takes O(n + num_keys) and num_keys * 4 bytes.
bool last_by_key(const uint32_t* keys, size_t n, size_t num_keys, std::vector<uint32_t>* distinct,
                 std::vector<uint32_t>* position);

// Sorts event indices by start rising, then duration falling, then index. Time is
// O(n log runs), where runs are the sorted stretches that the input already has.
void sort_slices(const int64_t* start, const int64_t* dur, uint32_t* events, size_t n);

}  // namespace trnscope
