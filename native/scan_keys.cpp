#include "scan_keys.h"

#include "scan_simd.h"

namespace trnscope {
namespace {

constexpr std::array<std::string_view, kNumFields> kFieldKeys = {
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "id2", "bp", "s", "args"};

}  // namespace

Field field_of(std::string_view key) {
    for (size_t i = 0; i < kNumFields; ++i) {
        if (kFieldKeys[i] == key) return static_cast<Field>(i);
    }
    return Field::kOther;
}

ArgKeys::ArgKeys(std::vector<ArgKey> keys) : keys_(std::move(keys)), next_(keys_.size(), kNone) {
    head_.fill(kNone);
    for (uint32_t k = 0; k < keys_.size(); ++k) {
        std::string& key = keys_[k].key;
        const size_t length = key.size();
        key.append(kPadding, '\0');  // find() reads 8 bytes
        key.resize(length);
        uint32_t& head = head_[bucket_of(key)];
        next_[k] = head;
        head = k;
    }
}

uint32_t ArgKeys::find(std::string_view key) const {
    for (uint32_t k = head_[bucket_of(key)]; k != kNone; k = next_[k]) {
        if (keys_[k].key == key) return k;
    }
    return kNone;
}

size_t ArgKeys::bucket_of(std::string_view key) {
    const uint64_t word = load_prefix(key.data(), key.size());
    const uint64_t hash = (word ^ key.size() * 0xD6E8FEB86659FD93ull) * 0x9E3779B97F4A7C15ull;
    return hash >> 55;
}

}  // namespace trnscope
