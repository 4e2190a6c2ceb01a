// One pass over a trace's slices: sums by name, and the few slices that torch's table treats
// specially.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

struct SliceColumns {
    const uint32_t* name;
    const uint8_t* kind;
    const uint32_t* parent;  // < num_slices; a root holds its own id
    const uint16_t* depth;
    const int64_t* dur_ns;
    const int64_t* self_ns;
    size_t num_slices;
};

// Each kind of slice has its own range of keys, so that one name can be several groups.
struct KeyRanges {
    uint32_t first[256];     // key = first[kind] + name
    size_t num_keys;         // of all ranges
    uint32_t num_call_keys;  // lower keys belong to calls
};

struct CallSurvey {
    std::vector<uint32_t> key;                      // by slice
    std::vector<int64_t> count, total_ns, self_ns;  // by key
    // Slice ids, rising:
    std::vector<uint32_t> overlapping;  // on a deeper lane than their parent's next
    std::vector<uint32_t> same_name;    // calls whose nearest call above has the same name
    std::vector<uint32_t> same_above;   // for each of these: that call above
    std::vector<uint32_t> empty;        // calls of no length
};

// False where a parent, or a key, is out of range.
bool survey_calls(const SliceColumns& in, const KeyRanges& keys, CallSurvey* out);

// Calls outside of all others, and some that have only slices that are no calls around them.
std::vector<uint32_t> outer_calls(const uint32_t* key, const uint32_t* above, size_t num_slices,
                                  uint32_t num_call_keys);

// The nearest call strictly above a slice; the slice itself where there is none.
uint32_t call_above(const SliceColumns& in, const KeyRanges& keys, uint32_t slice);

}  // namespace trnscope
