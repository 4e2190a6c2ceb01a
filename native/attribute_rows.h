// Brings the rows of one attribute from event indices to slice ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace trnscope {

// Rows by rising slice, one a slice. The arrays are left uninitialised until they are filled.
template <typename T>
struct AttributeRows {
    size_t count = 0;
    std::unique_ptr<uint32_t[]> slice;
    std::unique_ptr<T[]> value;
};

// A set of slices that tells how many smaller ones it holds; two and a half bits a slice.
class SliceSet {
  public:
    explicit SliceSet(size_t num_slices) : bits_(num_slices / 64 + 1), before_(bits_.size()) {}

    void add(uint32_t slice) { bits_[slice / 64] |= uint64_t{1} << (slice % 64); }

    // Makes `rank` usable; returns the size of the set.
    size_t count();

    uint32_t rank(uint32_t slice) const {
        const uint64_t below = bits_[slice / 64] & ((uint64_t{1} << (slice % 64)) - 1);
        return before_[slice / 64] + static_cast<uint32_t>(__builtin_popcountll(below));
    }

    // Writes the slices, rising.
    void list(uint32_t* out) const;

  private:
    std::vector<uint64_t> bits_;
    std::vector<uint32_t> before_;
};

// Of several values of a slice the last is kept. False if an event or its slice is not below
// num_events.
template <typename T>
bool rows_by_slice(const uint32_t* events, const T* values, size_t n,
                   const uint32_t* slice_of_event, size_t num_events, AttributeRows<T>* out) {
    SliceSet slices(num_events);
    for (size_t i = 0; i < n; ++i) {
        if (events[i] >= num_events || slice_of_event[events[i]] >= num_events) return false;
        slices.add(slice_of_event[events[i]]);
    }
    out->count = slices.count();
    out->slice.reset(new uint32_t[out->count]);
    out->value.reset(new T[out->count]);
    slices.list(out->slice.get());
    for (size_t i = 0; i < n; ++i) out->value[slices.rank(slice_of_event[events[i]])] = values[i];
    return true;
}

}  // namespace trnscope
