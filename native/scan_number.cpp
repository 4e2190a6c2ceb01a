#include "scan_number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "scan_digits.h"

namespace trnscope {
namespace {

constexpr int kKept = 24;
constexpr int kMaxU64Digits = 20;
constexpr int kMaxI64Digits = 19;
constexpr int64_t kMaxExponent = int64_t{1} << 40;

// The value of the digits that text begins with; returns how many they are. With more than
// `limit` (at most 19) of them the value is not told.
size_t plain_digits(std::string_view text, size_t limit, uint64_t* value) {
    constexpr std::array<uint64_t, 9> kPowers = {1,       10,        100,        1000,       10'000,
                                                 100'000, 1'000'000, 10'000'000, 100'000'000};
    const char* p = text.data();
    size_t left = static_cast<size_t>(skip_digits(p) - p);
    if (left > text.size()) left = text.size();
    const size_t n = left;
    if (n > limit) return n;
    *value = 0;
    while (left > 0) {
        const size_t taken = left < 8 ? left : 8;
        *value = *value * kPowers[taken] + few_digits(p, taken);
        p += taken;
        left -= taken;
    }
    return n;
}

// 0.d1d2d3... * 10^point, with d1 not zero; no digits at all for zero.
struct Decimal {
    bool negative = false;
    bool rest = false;  // a digit other than 0 beyond those kept
    int num_digits = 0;
    int64_t point = 0;
    std::array<uint8_t, kKept> digits{};

    unsigned digit(int64_t i) const { return i < num_digits ? digits[static_cast<size_t>(i)] : 0u; }
    void push(char c) {
        if (num_digits < kKept) {
            digits[static_cast<size_t>(num_digits++)] = static_cast<uint8_t>(c - '0');
        } else {
            rest |= c != '0';
        }
    }
    // Whether no digit from the i-th on is set.
    bool is_zero_from(int64_t i) const {
        for (; i < num_digits; ++i) {
            if (digit(i) != 0) return false;
        }
        return !rest;
    }
};

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

// Digits of one side of the point; returns how many there were.
size_t read_digits(std::string_view* text, bool is_fraction, Decimal* number) {
    size_t n = 0;
    for (; n < text->size() && is_digit((*text)[n]); ++n) {
        const char c = (*text)[n];
        const bool leading = c == '0' && number->num_digits == 0;
        if (is_fraction ? leading : !leading) number->point += is_fraction ? -1 : 1;
        if (!leading) number->push(c);
    }
    text->remove_prefix(n);
    return n;
}

bool take_sign(std::string_view* text) {
    const bool minus = !text->empty() && text->front() == '-';
    if (minus || (!text->empty() && text->front() == '+')) text->remove_prefix(1);
    return minus;
}

bool read_exponent(std::string_view text, Decimal* number) {
    if (text.empty()) return true;
    if (text.front() != 'e' && text.front() != 'E') return false;
    text.remove_prefix(1);
    const bool minus = take_sign(&text);
    if (text.empty()) return false;
    int64_t exponent = 0;
    for (const char c : text) {
        if (!is_digit(c)) return false;
        if (exponent < kMaxExponent) exponent = exponent * 10 + (c - '0');
    }
    number->point += minus ? -exponent : exponent;
    return true;
}

bool read_decimal(std::string_view text, Decimal* number) {
    number->negative = take_sign(&text);
    size_t num_digits = read_digits(&text, false, number);
    if (!text.empty() && text.front() == '.') {
        text.remove_prefix(1);
        num_digits += read_digits(&text, true, number);
    }
    return num_digits > 0 && read_exponent(text, number);
}

// The first `count` (at most 20) digits as a number; false if they exceed uint64.
bool leading_digits(const Decimal& number, int64_t count, uint64_t* value) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        const unsigned digit = number.digit(i);
        if (sum > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

bool decimal_to_ns(std::string_view text, int64_t* ns) {
    Decimal number;
    if (!read_decimal(trim(text), &number)) return false;
    *ns = 0;
    const int64_t count = number.point + 3;
    if (number.num_digits == 0 || count < 0) return true;
    uint64_t magnitude;
    if (count > kMaxI64Digits || !leading_digits(number, count, &magnitude)) return false;
    if (number.digit(count) >= 5) ++magnitude;
    if (magnitude > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
    const auto value = static_cast<int64_t>(magnitude);
    *ns = number.negative ? -value : value;
    return true;
}

bool hex_to_u64(std::string_view digits, uint64_t* bits) {
    uint64_t sum = 0;
    for (const char c : digits) {
        const char lower = static_cast<char>(c | 0x20);
        if (sum >> 60) return false;
        if (is_digit(c)) {
            sum = sum * 16 + static_cast<uint64_t>(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            sum = sum * 16 + static_cast<uint64_t>(lower - 'a' + 10);
        } else {
            return false;
        }
    }
    *bits = sum;
    return !digits.empty();
}

bool decimal_to_integer(std::string_view text, uint64_t* bits, bool* negative) {
    Decimal number;
    if (!read_decimal(text, &number)) return false;
    *bits = 0;
    *negative = false;
    if (number.num_digits == 0) return true;
    if (number.point <= 0 || number.point > kMaxU64Digits) return false;
    uint64_t magnitude;
    if (!number.is_zero_from(number.point)) return false;
    if (!leading_digits(number, number.point, &magnitude)) return false;
    if (number.negative && magnitude > uint64_t{1} << 63) return false;
    *negative = number.negative;
    *bits = number.negative ? ~magnitude + 1 : magnitude;
    return true;
}

}  // namespace

const char* scan_number(const char* p, const char** stop) {
    if (*p == '-' || *p == '+') ++p;
    const char* const whole = p;
    while (is_digit(*p)) ++p;
    bool has_digits = p != whole;
    if (*p == '.') {
        const char* const fraction = ++p;
        while (is_digit(*p)) ++p;
        has_digits |= p != fraction;
    }
    *stop = p;
    if (!has_digits) return nullptr;
    if (*p != 'e' && *p != 'E') return p;
    ++p;
    if (*p == '-' || *p == '+') ++p;
    const char* const exponent = p;
    while (is_digit(*p)) ++p;
    *stop = p;
    return p == exponent ? nullptr : p;
}

bool to_ns(std::string_view text, int64_t* ns) {
    constexpr size_t kMaxWhole = 16;
    constexpr uint64_t kLimit = 9'000'000'000'000'000;  // times 1000 it fits
    constexpr std::array<uint64_t, 4> kScale = {1000, 100, 10, 1};
    uint64_t whole;
    const size_t num_whole = plain_digits(text, kMaxWhole, &whole);
    if (num_whole == 0 || num_whole > kMaxWhole || whole >= kLimit) return decimal_to_ns(text, ns);
    uint64_t decimals = 0;
    size_t num_decimals = 0;
    size_t size = num_whole;
    if (size < text.size() && text[size] == '.') {
        num_decimals = plain_digits(text.substr(size + 1), 3, &decimals);
        size += 1 + num_decimals;
    }
    if (size != text.size() || num_decimals > 3) return decimal_to_ns(text, ns);
    *ns = static_cast<int64_t>(whole * 1000 + decimals * kScale[num_decimals]);
    return true;
}

bool to_integer(std::string_view text, uint64_t* bits, bool* negative) {
    constexpr size_t kMaxDigits = 19;
    *negative = false;
    const size_t num_digits = plain_digits(text, kMaxDigits, bits);
    if (num_digits == text.size() && num_digits > 0 && num_digits <= kMaxDigits) return true;
    text = trim(text);
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        return hex_to_u64(text.substr(2), bits);
    }
    return decimal_to_integer(text, bits, negative);
}

bool to_double(std::string_view text, double* value) {
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
#ifdef __cpp_lib_to_chars
    const auto end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, *value);
    if (result.ec == std::errc() && result.ptr == end) return std::isfinite(*value);
#endif
    *value = std::strtod(std::string(text).c_str(), nullptr);
    return std::isfinite(*value);
}

}  // namespace trnscope
