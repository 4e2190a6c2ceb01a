// Which members of an event are read, and which members of its args are wanted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trnscope {

enum class Field : uint8_t {
    kPh,
    kCat,
    kName,
    kPid,
    kTid,
    kTs,
    kDur,
    kId,
    kId2,
    kBp,
    kS,
    kArgs,
    kOther,
};
constexpr size_t kNumFields = 12;

Field field_of(std::string_view key);

struct ArgKey {
    std::string key;
    bool is_text;
};

// Finds a requested key by its text. Of keys given twice the last one counts.
class ArgKeys {
  public:
    static constexpr uint32_t kNone = 0xFFFFFFFFu;

    explicit ArgKeys(std::vector<ArgKey> keys);

    size_t size() const { return keys_.size(); }
    bool is_text(uint32_t k) const { return keys_[k].is_text; }
    // `key` must be readable for 8 bytes.
    uint32_t find(std::string_view key) const;

  private:
    static constexpr size_t kNumBuckets = 512;
    static size_t bucket_of(std::string_view key);

    std::vector<ArgKey> keys_;
    std::array<uint32_t, kNumBuckets> head_;
    std::vector<uint32_t> next_;  // by key: another one of the same bucket
};

}  // namespace trnscope
