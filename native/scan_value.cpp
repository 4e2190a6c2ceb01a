#include "scan_value.h"

#include "scan_number.h"

namespace trnscope {
namespace {

char closing(char open) {
    return open == '{' ? '}' : ']';
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

Value whole(const char* begin, const char* end, ValueKind kind) {
    return {begin, static_cast<uint32_t>(end - begin), kind, 0};
}

}  // namespace

// The string at p, whose first special character is no quote.
const char* ValueScanner::odd_string(const char* p, const char* special, Value* value) {
    uint8_t notes = 0;
    const char* const close = string_end(special, end_, &notes, &damage_);
    if (close == nullptr) return fail(end_);
    saw_non_ascii_ |= (notes & kNoteNonAscii) != 0;
    *value = {p + 1, static_cast<uint32_t>(close - p - 1), ValueKind::kString, notes};
    return close + 1;
}

// The value at p, which is neither a string nor a plain number.
const char* ValueScanner::other_value(const char* p, Value* value) {
    if (*p != '{' && *p != '[') return scalar(p, value);
    uint32_t ignored;
    return container(p, value, &ignored);
}

const char* ValueScanner::scalar(const char* p, Value* value) {
    switch (*p) {
        case 't':
            return word(p, "true", ValueKind::kBool, value);
        case 'f':
            return word(p, "false", ValueKind::kBool, value);
        case 'n':
            if (lower(p[1]) == 'a') return non_finite(p, p, value);
            return word(p, "null", ValueKind::kNull, value);
        case 'N':
        case 'I':
        case 'i':
            return non_finite(p, p, value);
        case '-':
        case '+':
            if (lower(p[1]) == 'i' || lower(p[1]) == 'n') return non_finite(p, p + 1, value);
            return number(p, value);
        default:
            return number(p, value);
    }
}

const char* ValueScanner::number(const char* p, Value* value) {
    const char* stop;
    const char* const after = scan_number(p, &stop);
    if (after == nullptr) return fail(stop);
    *value = whole(p, after, ValueKind::kNumber);
    return after;
}

const char* ValueScanner::word(const char* p, std::string_view word, ValueKind kind, Value* value) {
    for (size_t i = 0; i < word.size(); ++i) {
        if (p[i] != word[i]) return fail(p + i);
    }
    *value = whole(p, p + word.size(), kind);
    return p + word.size();
}

// nan, inf or infinity in any case, at `word`; `p` is at its sign.
const char* ValueScanner::non_finite(const char* p, const char* word, Value* value) {
    const std::string_view expected = lower(*word) == 'n' ? "nan" : "inf";
    const char* q = word;
    for (const char c : expected) {
        if (lower(*q) != c) return fail(q);
        ++q;
    }
    if (expected == "inf" && lower(*q) == 'i') {
        for (const char c : std::string_view("inity")) {
            if (lower(*q) != c) return fail(q);
            ++q;
        }
    }
    damage_.note(DamageKind::kNonFiniteNumber, p);
    *value = whole(p, q, ValueKind::kNonFinite);
    return q;
}

// The key at p with its colon; returns the position of the value.
const char* ValueScanner::key(const char* p) {
    if (*p != '"') return fail(p);
    Value ignored;
    p = string(p, &ignored);
    return p == nullptr ? nullptr : colon(p);
}

const char* ValueScanner::read_container(const char* p) {
    const char* const after = walk_container(p);
    if (memo_ != nullptr && after != nullptr && is_plain()) {
        memo_->add({p, static_cast<size_t>(after - p)});
    }
    return after;
}

const char* ValueScanner::walk_container(const char* p) {
    Value ignored;
    open_.assign(1, closing(*p));
    p = skip_space(p + 1);
    for (;;) {  // p is at a key, an element or a closing bracket
        if (*p == open_.back()) {
            open_.pop_back();
            if (open_.empty()) return p + 1;
            p = separator(p + 1, open_.back());
        } else {
            if (open_.back() == '}' && (p = key(p)) == nullptr) return nullptr;
            if (*p == '{' || *p == '[') {
                open_.push_back(closing(*p));
                p = skip_space(p + 1);
                continue;
            }
            p = value(p, &ignored);
            if (p != nullptr) p = separator(p, open_.back());
        }
        if (p == nullptr) return nullptr;
    }
}

MemberReader::MemberReader(std::string_view object) : p_(skip_space(object.data() + 1)) {
    scanner_.begin(object.data() + object.size());
}

bool MemberReader::next(Value* key, Value* value) {
    if (*p_ == '}') return false;
    p_ = scanner_.string(p_, key);
    p_ = scanner_.colon(p_);
    p_ = scanner_.value(p_, value);
    p_ = scanner_.separator(p_, '}');
    return true;
}

}  // namespace trnscope
