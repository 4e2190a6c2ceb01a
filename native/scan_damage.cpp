#include "scan_damage.h"

namespace trnscope {

const char* damage_name(DamageKind kind) {
    static constexpr std::array<const char*, kNumDamageKinds> kNames = {
        "truncated",         "unreadable-event",  "unreadable-member",
        "control-character", "invalid-utf8",      "bad-escape",
        "lone-surrogate",    "non-finite-number", "null-time",
        "text-time",         "unreadable-time",   "duplicate-key",
        "trailing-comma",    "missing-comma",     "bom",
        "second-document",   "trailing-data",     "oversized-metadata"};
    return kNames[static_cast<size_t>(kind)];
}

void DamageLog::add(const EventDamage& event, const char* text, uint64_t base) {
    for (size_t i = 0; i < kNumDamageKinds; ++i) {
        const auto kind = static_cast<DamageKind>(i);
        if (event.has(kind)) add(kind, base + static_cast<uint64_t>(event.first(kind) - text));
    }
}

void DamageLog::merge(const DamageLog& other) {
    for (size_t i = 0; i < kNumDamageKinds; ++i) {
        if (other.entries_[i].count != 0) merge(static_cast<DamageKind>(i), other.entries_[i]);
    }
}

}  // namespace trnscope
