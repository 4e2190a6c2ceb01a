#include "string_table.h"

#include <algorithm>
#include <cstring>

namespace trnscope {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr size_t kChunkBytes = 64 * 1024;
// A worker starts over with an empty table rather than hold more than this.
constexpr size_t kMaxLocalBytes = 32u << 20;
constexpr uint32_t kMaxLocalStrings = 400'000;

uint64_t mix(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
    const uint64_t x = (a ^ (a >> 32)) * 0x9E3779B97F4A7C15ull;
    return (x ^ b ^ (x >> 29)) * 0xBF58476D1CE4E5B9ull;
#endif
}

uint64_t hash_text(std::string_view text) {
    constexpr uint64_t kA = 0xA0761D6478BD642Full;
    constexpr uint64_t kB = 0xE7037ED1A0B428DBull;
    const char* p = text.data();
    size_t left = text.size();
    uint64_t state = kA ^ left;
    for (; left > 16; left -= 16, p += 16) {
        state = mix(load_u64(p) ^ kB, load_u64(p + 8) ^ state);
    }
    const uint64_t low = load_prefix(p, left);
    const uint64_t high = left > 8 ? load_u64(p + left - 8) : 0;
    return mix(low ^ kB ^ state, high ^ kA ^ (state >> 32));
}

bool is_equal(std::string_view a, std::string_view b) {
    return a.size() == b.size() && equal_bytes(a.data(), b.data(), a.size());
}

}  // namespace

StringTable::StringTable() : slots_(kFirstSlots) {}

uint32_t StringTable::intern(std::string_view text) {
    const uint64_t hash = hash_text(text);
    const size_t mask = slots_.size() - 1;
    for (size_t place = hash & mask;; place = (place + 1) & mask) {
        const Slot& slot = slots_[place];
        if (slot.id_plus_1 == 0) return insert(text, hash, place);
        if (slot.hash != hash) continue;
        if (is_equal(texts_[slot.id_plus_1 - 1], text)) return slot.id_plus_1 - 1;
    }
}

uint32_t StringTable::insert(std::string_view text, uint64_t hash, size_t place) {
    const auto id = static_cast<uint32_t>(texts_.size());
    texts_.push_back(store(text));
    slots_[place] = {hash, id + 1};
    if (texts_.size() * 2 > slots_.size()) grow();
    return id;
}

void StringTable::grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.id_plus_1 == 0) continue;
        size_t place = slot.hash & mask;
        while (slots_[place].id_plus_1 != 0) place = (place + 1) & mask;
        slots_[place] = slot;
    }
}

std::string_view StringTable::store(std::string_view text) {
    const size_t needed = text.size() + 16;  // so that intern() can be given what it handed out
    if (needed > num_free_) {
        num_free_ = std::max(needed, kChunkBytes);
        chunks_.push_back(std::make_unique<char[]>(num_free_));
        free_ = chunks_.back().get();
    }
    char* const start = free_;
    if (!text.empty()) std::memcpy(start, text.data(), text.size());
    free_ += needed;
    num_free_ -= needed;
    num_bytes_ += needed;
    return {start, text.size()};
}

bool LocalInterner::take(std::vector<LocalUse>* uses, std::shared_ptr<LocalTable>* table) {
    uses->clear();
    uses->swap(uses_);
    *table = table_;
    ++batch_;
    const bool full = table_->table.num_bytes() > kMaxLocalBytes ||
                      table_->table.size() > kMaxLocalStrings || batch_ == 0xFFFFFFFFu;
    if (full) renew();
    return full;
}

void LocalInterner::renew() {
    table_ = std::make_shared<LocalTable>();
    uses_.clear();
    batch_ = 1;
}

}  // namespace trnscope
