#include "scan_string.h"

namespace trnscope {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

enum class Step { kOk, kBad, kShort };

// A character or escape: how long it is, and which one it is.
struct Unit {
    Step step;
    uint8_t length;
    bool lone_surrogate;
    uint32_t code;
};

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Four hexadecimal digits at p.
Step read_hex4(const char* p, const char* end, uint32_t* code) {
    *code = 0;
    for (int i = 0; i < 4; ++i) {
        if (p + i >= end) return Step::kShort;
        const int digit = hex_value(p[i]);
        if (digit < 0) return Step::kBad;
        *code = *code * 16 + static_cast<uint32_t>(digit);
    }
    return Step::kOk;
}

// The escape \uDC00 to \uDFFF at p, which completes a pair.
Step read_low_surrogate(const char* p, const char* end, uint32_t* low) {
    if (p >= end) return Step::kShort;
    if (p[0] != '\\') return Step::kBad;
    if (p + 1 >= end) return Step::kShort;
    if (p[1] != 'u') return Step::kBad;
    const Step step = read_hex4(p + 2, end, low);
    if (step != Step::kOk) return step;
    return *low >= 0xDC00 && *low <= 0xDFFF ? Step::kOk : Step::kBad;
}

Unit read_unicode_escape(const char* p, const char* end) {
    uint32_t code;
    const Step step = read_hex4(p + 2, end, &code);
    if (step != Step::kOk) return {step, 1, false, '\\'};
    if (code < 0xD800 || code > 0xDFFF) return {Step::kOk, 6, false, code};
    if (code >= 0xDC00) return {Step::kOk, 6, true, 0xFFFD};
    uint32_t low;
    switch (read_low_surrogate(p + 6, end, &low)) {
        case Step::kOk:
            return {Step::kOk, 12, false, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)};
        case Step::kBad:
            return {Step::kOk, 6, true, 0xFFFD};
        default:
            return {Step::kShort, 6, true, 0xFFFD};
    }
}

// The escape whose backslash is at p; a bad one is one backslash long.
Unit read_escape(const char* p, const char* end) {
    if (p + 1 >= end) return {Step::kShort, 1, false, '\\'};
    switch (p[1]) {
        case '"':
        case '\\':
        case '/':
            return {Step::kOk, 2, false, static_cast<uint32_t>(p[1])};
        case 'b':
            return {Step::kOk, 2, false, '\b'};
        case 'f':
            return {Step::kOk, 2, false, '\f'};
        case 'n':
            return {Step::kOk, 2, false, '\n'};
        case 'r':
            return {Step::kOk, 2, false, '\r'};
        case 't':
            return {Step::kOk, 2, false, '\t'};
        case 'u':
            return read_unicode_escape(p, end);
        default:
            return {Step::kBad, 1, false, '\\'};
    }
}

// Length of the character that a byte begins and the range of its second byte.
struct Lead {
    uint8_t length;
    uint8_t low;
    uint8_t high;
};

Lead lead_of(uint8_t byte) {
    if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};
    if (byte == 0xED) return {3, 0x80, 0x9F};
    if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};
    if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

// The UTF-8 character at p (not ASCII). A bad one is as long as its longest valid beginning,
// which is replaced as a whole.
Unit read_utf8(const char* p, const char* end) {
    const Lead lead = lead_of(static_cast<uint8_t>(*p));
    for (uint8_t i = 1; i < lead.length; ++i) {
        if (p + i >= end) return {Step::kShort, i, false, 0};
        const auto byte = static_cast<uint8_t>(p[i]);
        const bool fits =
            i == 1 ? byte >= lead.low && byte <= lead.high : byte >= 0x80 && byte <= 0xBF;
        if (!fits) return {Step::kBad, i, false, 0};
    }
    if (lead.length == 0) return {Step::kBad, 1, false, 0};
    return {Step::kOk, lead.length, false, 0};
}

void append_utf8(uint32_t code, std::string* out) {
    const auto tail = [&](unsigned shift) {
        out->push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F)));
    };
    if (code < 0x80) {
        out->push_back(static_cast<char>(code));
    } else if (code < 0x800) {
        out->push_back(static_cast<char>(0xC0 | (code >> 6)));
        tail(0);
    } else if (code < 0x10000) {
        out->push_back(static_cast<char>(0xE0 | (code >> 12)));
        tail(6);
        tail(0);
    } else {
        out->push_back(static_cast<char>(0xF0 | (code >> 18)));
        tail(12);
        tail(6);
        tail(0);
    }
}

// Copies the character at p, or its replacement; returns its length.
size_t append_character(const char* p, const char* end, std::string* out) {
    if (static_cast<signed char>(*p) >= 0) {
        out->push_back(*p);
        return 1;
    }
    const Unit unit = read_utf8(p, end);
    if (unit.step == Step::kOk) {
        out->append(p, unit.length);
    } else {
        out->append(kReplacement);
    }
    return unit.length;
}

Unit check_escape(const char* p, const char* end, uint8_t* notes, EventDamage* damage) {
    const Unit unit = read_escape(p, end);
    *notes |= kNoteEscaped;
    if (unit.step == Step::kBad) {
        *notes |= kNoteBadEscape;
        damage->note(DamageKind::kBadEscape, p);
    } else if (unit.step == Step::kOk && unit.lone_surrogate) {
        damage->note(DamageKind::kLoneSurrogate, p);
    }
    return unit;
}

Unit check_utf8(const char* p, const char* end, uint8_t* notes, EventDamage* damage) {
    const Unit unit = read_utf8(p, end);
    *notes |= kNoteNonAscii;
    if (unit.step == Step::kBad) {
        *notes |= kNoteInvalidUtf8;
        damage->note(DamageKind::kInvalidUtf8, p);
    }
    return unit;
}

}  // namespace

const char* string_end(const char* p, const char* end, uint8_t* notes, EventDamage* damage) {
    for (;;) {
        p = find_special(p);
        if (p >= end) return nullptr;
        if (*p == '"') return p;
        Unit unit{Step::kOk, 1, false, 0};
        if (*p == '\\') {
            unit = check_escape(p, end, notes, damage);
        } else if (static_cast<signed char>(*p) < 0) {
            unit = check_utf8(p, end, notes, damage);
        } else {
            damage->note(DamageKind::kControlCharacter, p);
        }
        if (unit.step == Step::kShort) return nullptr;
        p += unit.length;
    }
}

void decode_string(std::string_view content, std::string* out) {
    out->clear();
    const char* p = content.data();
    const char* const end = p + content.size();
    while (p < end) {
        if (*p != '\\') {
            p += append_character(p, end, out);
            continue;
        }
        const Unit unit = read_escape(p, end);
        append_utf8(unit.code, out);
        p += unit.length;
    }
}

void sanitize_utf8(std::string_view text, std::string* out) {
    out->clear();
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) p += append_character(p, end, out);
}

size_t find_bad_escape(std::string_view content) {
    const char* const begin = content.data();
    const char* const end = begin + content.size();
    for (const char* p = begin; p < end;) {
        if (*p != '\\') {
            ++p;
            continue;
        }
        const Unit unit = read_escape(p, end);
        // Only a bad escape is one byte long; it may also be cut off by the end of the string.
        if (unit.length == 1) return static_cast<size_t>(p - begin);
        p += unit.length;
    }
    return std::string_view::npos;
}

uint64_t stable_hash(std::string_view text) {
    uint64_t state = 0xCBF29CE484222325ull;
    for (const char c : text) state = (state ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
    return state;
}

}  // namespace trnscope
