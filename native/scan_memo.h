// Arrays and objects that were read lately: the same text again need not be read again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "scan_simd.h"

namespace trnscope {

// Holds texts of values that begin and end with their own brackets, are well formed and are ASCII
// without damage. A text with the same bytes is then such a value too, and ends where it ends.
class ValueMemo {
  public:
    static constexpr uint32_t kNoId = 0xFFFFFFFFu;

    // `id` is for the owner: what it knows about the text.
    struct Entry {
        static constexpr size_t kMaxText = 240;

        uint32_t length = 0;
        uint32_t id = kNoId;
        std::array<char, kMaxText + 16> text;
    };

    // The entry whose text is at p, or nullptr. p is followed by at least 32 readable bytes.
    const Entry* find(const char* p) const {
        const Set& set = (*sets_)[set_of(p)];
        for (const Entry& entry : set.ways) {
            if (entry.length != 0 && equal_bytes(p, entry.text.data(), entry.length)) return &entry;
        }
        return nullptr;
    }

    // Keeps a text that find() did not find; it is followed by at least 32 readable bytes.
    void add(std::string_view text);

    // Gives the text its id, if it is still here.
    void set_id(std::string_view text, uint32_t id) {
        Entry* entry = const_cast<Entry*>(find(text.data()));
        if (entry != nullptr && entry->length == text.size()) entry->id = id;
    }

    void forget_ids();

  private:
    static constexpr unsigned kSetBits = 7;

    struct Set {
        std::array<Entry, 2> ways;
        uint32_t oldest = 0;
    };

    static size_t set_of(const char* p) {
        const uint64_t a = load_u64(p) + load_u64(p + 8) * 0x9E3779B97F4A7C15ull;
        const uint64_t b = load_u64(p + 16) + load_u64(p + 24) * 0xD6E8FEB86659FD93ull;
        return ((a ^ (a >> 29)) * 0xBF58476D1CE4E5B9ull + b * 0x94D049BB133111EBull) >>
               (64 - kSetBits);
    }

    using Sets = std::array<Set, size_t{1} << kSetBits>;
    std::unique_ptr<Sets> sets_ = std::make_unique<Sets>();
};

}  // namespace trnscope
