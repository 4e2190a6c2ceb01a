#include "scan_keys.h"

#include "scan_simd.h"

namespace trnscope {
namespace {

// A key of at most 4 characters with its closing quote, as load_u64 reads it.
constexpr uint64_t quoted(const char* key) {
    uint64_t word = 0;
    unsigned shift = 0;
    for (; *key != '\0'; ++key, shift += 8) {
        word |= static_cast<uint64_t>(static_cast<unsigned char>(*key)) << shift;
    }
    return word | uint64_t{'"'} << shift;
}

constexpr uint64_t low_bytes(uint64_t word, unsigned n) {
    return word & ((uint64_t{1} << (8 * n)) - 1);
}

Field field_of_2(uint64_t word) {
    switch (low_bytes(word, 3)) {
        case quoted("ph"):
            return Field::kPh;
        case quoted("ts"):
            return Field::kTs;
        case quoted("id"):
            return Field::kId;
        case quoted("bp"):
            return Field::kBp;
        default:
            return Field::kOther;
    }
}

Field field_of_3(uint64_t word) {
    switch (low_bytes(word, 4)) {
        case quoted("cat"):
            return Field::kCat;
        case quoted("pid"):
            return Field::kPid;
        case quoted("tid"):
            return Field::kTid;
        case quoted("dur"):
            return Field::kDur;
        case quoted("id2"):
            return Field::kId2;
        default:
            return Field::kOther;
    }
}

Field field_of_4(uint64_t word) {
    switch (low_bytes(word, 5)) {
        case quoted("name"):
            return Field::kName;
        case quoted("args"):
            return Field::kArgs;
        default:
            return Field::kOther;
    }
}

}  // namespace

Field field_at(const char* p, size_t* length) {
    const uint64_t word = load_u64(p);
    if (p[1] == '"') {
        *length = 1;
        return *p == 's' ? Field::kS : Field::kOther;
    }
    if (p[2] == '"') {
        *length = 2;
        return field_of_2(word);
    }
    if (p[3] == '"') {
        *length = 3;
        return field_of_3(word);
    }
    *length = 4;
    return field_of_4(word);
}

Field field_of(std::string_view key) {
    std::string quoted_key(key);
    quoted_key += '"';
    quoted_key.append(kPadding, '\0');
    size_t length;
    const Field field = field_at(quoted_key.data(), &length);
    return length == key.size() ? field : Field::kOther;
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
