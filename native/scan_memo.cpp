#include "scan_memo.h"

#include <cstring>

namespace trnscope {

void ValueMemo::add(std::string_view text) {
    if (text.size() > Entry::kMaxText) return;
    Set& set = (*sets_)[set_of(text.data())];
    Entry& entry = set.ways[set.oldest];
    set.oldest ^= 1;
    entry.length = static_cast<uint32_t>(text.size());
    entry.id = kNoId;
    std::memcpy(entry.text.data(), text.data(), text.size());
}

void ValueMemo::forget_ids() {
    for (Set& set : *sets_) {
        for (Entry& entry : set.ways) entry.id = kNoId;
    }
}

}  // namespace trnscope
