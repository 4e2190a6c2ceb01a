// Kinds of damage that a trace survives, and how often and where each was met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trnscope {

enum class DamageKind : uint8_t {
    kTruncated,
    kUnreadableEvent,
    kUnreadableMember,
    kControlCharacter,
    kInvalidUtf8,
    kBadEscape,
    kLoneSurrogate,
    kNonFiniteNumber,
    kNullTime,
    kTextTime,
    kUnreadableTime,
    kDuplicateKey,
    kTrailingComma,
    kMissingComma,
    kBom,
    kSecondDocument,
    kTrailingData,
    kOversizedMetadata,
};
constexpr size_t kNumDamageKinds = 18;

const char* damage_name(DamageKind kind);

// Kinds met in one event. Positions are pointers into the text being read.
class EventDamage {
  public:
    void clear() { mask_ = 0; }
    bool any() const { return mask_ != 0; }
    bool has(DamageKind kind) const { return (mask_ & bit(kind)) != 0; }
    const char* first(DamageKind kind) const { return first_[static_cast<size_t>(kind)]; }

    void note(DamageKind kind, const char* at) {
        const char*& first = first_[static_cast<size_t>(kind)];
        if (!has(kind) || at < first) first = at;
        mask_ |= bit(kind);
    }

  private:
    static uint32_t bit(DamageKind kind) { return uint32_t{1} << static_cast<unsigned>(kind); }

    uint32_t mask_ = 0;
    std::array<const char*, kNumDamageKinds> first_{};
};

// Events per kind over a stretch of the input, and the offset of each kind's first byte.
class DamageLog {
  public:
    struct Entry {
        uint64_t count = 0;
        uint64_t first_offset = 0;
    };

    void clear() { entries_ = {}; }
    const Entry& operator[](DamageKind kind) const { return entries_[static_cast<size_t>(kind)]; }
    void add(DamageKind kind, uint64_t offset) { merge(kind, {1, offset}); }

    // `text` is at file offset `base`.
    void add(const EventDamage& event, const char* text, uint64_t base);
    void merge(const DamageLog& other);

  private:
    void merge(DamageKind kind, const Entry& other) {
        Entry& entry = entries_[static_cast<size_t>(kind)];
        if (entry.count == 0 || other.first_offset < entry.first_offset) {
            entry.first_offset = other.first_offset;
        }
        entry.count += other.count;
    }

    std::array<Entry, kNumDamageKinds> entries_{};
};

}  // namespace trnscope
