#include "attribute_rows.h"

namespace trnscope {

size_t SliceSet::count() {
    uint32_t total = 0;
    for (size_t word = 0; word < bits_.size(); ++word) {
        before_[word] = total;
        total += static_cast<uint32_t>(__builtin_popcountll(bits_[word]));
    }
    return total;
}

void SliceSet::list(uint32_t* out) const {
    for (size_t word = 0; word < bits_.size(); ++word) {
        for (uint64_t left = bits_[word]; left != 0; left &= left - 1) {
            *out++ = static_cast<uint32_t>(word * 64) + __builtin_ctzll(left);
        }
    }
}

}  // namespace trnscope
