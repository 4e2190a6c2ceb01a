// One JSON value in a text: where it ends and what it is. Iterative at any depth.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scan_damage.h"
#include "scan_digits.h"
#include "scan_memo.h"
#include "scan_string.h"

namespace trnscope {

enum class ValueKind : uint8_t {
    kAbsent,
    kNull,
    kBool,
    kNumber,
    kNonFinite,
    kString,
    kObject,
    kArray,
};

// `text` is a string's content between the quotes, or the whole text of any other value.
struct Value {
    const char* begin = nullptr;
    uint32_t length = 0;
    ValueKind kind = ValueKind::kAbsent;
    uint8_t notes = 0;  // StringNote bits of a string

    std::string_view text() const { return {begin, length}; }
    // Where the value starts in the file, with its quote.
    const char* start() const { return kind == ValueKind::kString ? begin - 1 : begin; }
};

enum class ScanStatus : uint8_t { kOk, kNeedMore, kBad };

// Reads values of one text, which ends at `end` and is followed by kPadding zero bytes.
// Functions return the position after what they read, or nullptr; then `failed_at` is the byte
// that does not fit, which is at or after `end` where the text ends too early.
class ValueScanner {
  public:
    ValueScanner() = default;
    // Remembers arrays and objects in `memo`.
    explicit ValueScanner(ValueMemo* memo) : memo_(memo) {}

    void begin(const char* end) {
        end_ = end;
        damage_.clear();
        saw_non_ascii_ = false;
    }
    const char* end() const { return end_; }
    EventDamage& damage() { return damage_; }
    // Whether a string since begin() had a byte that is not ASCII.
    bool saw_non_ascii() const { return saw_non_ascii_; }
    bool is_plain() const { return !damage_.any() && !saw_non_ascii_; }
    const char* failed_at() const { return failed_at_; }
    ScanStatus failure() const {
        return failed_at_ >= end_ ? ScanStatus::kNeedMore : ScanStatus::kBad;
    }

    const char* fail(const char* at) {
        failed_at_ = at;
        return nullptr;
    }

    // The string whose opening quote is at p.
    const char* string(const char* p, Value* value) {
        const char* const close = find_special(p + 1);
        if (*close != '"' || close >= end_) return odd_string(p, close, value);
        *value = {p + 1, static_cast<uint32_t>(close - p - 1), ValueKind::kString, 0};
        return close + 1;
    }

    // The value whose first byte is at p, which is likely to be a string of one character.
    const char* letter(const char* p, Value* value) {
        const char c = p[1];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (*p != '"' || !is_letter || p[2] != '"') return this->value(p, value);
        *value = {p + 1, 1, ValueKind::kString, 0};
        return p + 3;
    }

    // The value whose first byte is at p.
    const char* value(const char* p, Value* value) {
        if (*p == '"') return string(p, value);
        if (*p > '9') return other_value(p, value);
        const char* const q = skip_digits(p);
        if (q == p || continues_number(*q)) return other_value(p, value);
        *value = {p, static_cast<uint32_t>(q - p), ValueKind::kNumber, 0};
        return q;
    }

    // Passes over the value whose first byte is at p.
    const char* skip(const char* p) {
        const char* const q = skip_digits(p);
        if (q != p && !continues_number(*q)) return q;
        Value ignored;
        return value(p, &ignored);
    }

    // The array or object at p, of which the memo may know the text; *id is then what it knows.
    const char* container(const char* p, Value* value, uint32_t* id) {
        const ValueKind kind = *p == '{' ? ValueKind::kObject : ValueKind::kArray;
        const ValueMemo::Entry* const known = memo_ == nullptr ? nullptr : memo_->find(p);
        if (known != nullptr) {
            *value = {p, known->length, kind, 0};
            *id = known->id;
            return p + known->length;
        }
        *id = ValueMemo::kNoId;
        const char* const after = read_container(p);
        if (after != nullptr) *value = {p, static_cast<uint32_t>(after - p), kind, 0};
        return after;
    }

    // Position of the value of the member whose key ended before p.
    const char* colon(const char* p) {
        p = skip_space(p);
        if (*p != ':') return fail(p);
        return skip_space(p + 1);
    }

    // After a member or element: position of the next one, or of the closing bracket.
    // A comma just before the bracket is noted and passed over.
    const char* separator(const char* p, char close) {
        p = skip_space(p);
        if (*p == close) return p;
        if (*p != ',') return fail(p);
        const char* const comma = p;
        p = skip_space(p + 1);
        if (*p == close) damage_.note(DamageKind::kTrailingComma, comma);
        return p;
    }

  private:
    const char* odd_string(const char* p, const char* special, Value* value);
    const char* other_value(const char* p, Value* value);
    const char* scalar(const char* p, Value* value);
    const char* number(const char* p, Value* value);
    const char* word(const char* p, std::string_view word, ValueKind kind, Value* value);
    const char* non_finite(const char* p, const char* word, Value* value);
    const char* read_container(const char* p);
    const char* walk_container(const char* p);
    const char* key(const char* p);

    const char* end_ = nullptr;
    const char* failed_at_ = nullptr;
    EventDamage damage_;
    ValueMemo* memo_ = nullptr;
    bool saw_non_ascii_ = false;
    std::vector<char> open_;  // closing brackets that are due
};

// The members of an object that a ValueScanner has read without failure.
class MemberReader {
  public:
    explicit MemberReader(std::string_view object);

    bool next(Value* key, Value* value);

  private:
    ValueScanner scanner_;
    const char* p_;
};

}  // namespace trnscope
