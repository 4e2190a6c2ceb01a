// A stretch of an event's text with two of its members, which is the same in many events.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "scan_keys.h"
#include "scan_predict.h"
#include "scan_value.h"

namespace trnscope {

// The same bytes after the same members mean the same: one comparison replaces reading them.
class Stretch {
  public:
    static constexpr size_t kMaxText = 112;

    struct Member {
        Field field;
        Value value;  // a plain string or a number
    };

    uint32_t length() const { return length_; }
    KeyPredictor::Place place() const { return place_; }
    uint32_t fields() const { return fields_; }
    void forget() { length_ = 0; }

    bool is_at(const char* p) const {
        return length_ != 0 && equal_bytes(p, text_.data(), length_);
    }

    // Sets the members' values for a stretch that is at p.
    void get(const char* p, Value* values) const {
        for (const Part& part : parts_) {
            values[part.index] = {p + part.at, part.length, part.kind, 0};
        }
    }

    // [begin, end) was read without damage and has these members; then the predictor was at
    // `place`.
    void learn(const char* begin, const char* end, const std::array<Member, 2>& members,
               KeyPredictor::Place place) {
        const auto length = static_cast<size_t>(end - begin);
        if (length > kMaxText) return;
        std::memcpy(text_.data(), begin, length);
        length_ = static_cast<uint32_t>(length);
        fields_ = 0;
        for (size_t i = 0; i < members.size(); ++i) {
            const Value& value = members[i].value;
            const auto index = static_cast<uint32_t>(members[i].field);
            parts_[i] = {index, static_cast<uint32_t>(value.begin - begin), value.length,
                         value.kind};
            fields_ |= uint32_t{1} << index;
        }
        place_ = place;
    }

  private:
    struct Part {
        uint32_t index;
        uint32_t at;
        uint32_t length;
        ValueKind kind;
    };

    uint32_t length_ = 0;
    uint32_t fields_ = 0;  // a bit per Field
    std::array<Part, 2> parts_;
    KeyPredictor::Place place_ = nullptr;
    std::array<char, kMaxText + 16> text_;
};

}  // namespace trnscope
