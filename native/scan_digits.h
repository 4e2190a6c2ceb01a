// Decimal digits to numbers, 8 at a time, for the numbers that fill traces.
//
// All texts must be readable for 16 bytes beyond their end.
#pragma once

#include <array>
#include <cstdint>

#include "scan_simd.h"

namespace trnscope {

inline bool is_digit(char c) {
    return static_cast<unsigned char>(c - '0') < 10;
}

// Whether a number goes on after its first digits.
inline bool continues_number(char c) {
    return c == '.' || (c | 0x20) == 'e';
}

// The value of 8 digits, read as load_u64 does.
inline uint64_t eight_digits(uint64_t word) {
    word -= 0x3030303030303030ull;
    word = word * 10 + (word >> 8);  // pairs, in every second byte
    const uint64_t low = (word & 0x000000FF000000FFull) * 0x000F424000000064ull;
    const uint64_t high = ((word >> 16) & 0x000000FF000000FFull) * 0x0000271000000001ull;
    return static_cast<uint32_t>((low + high) >> 32);
}

// The value of 1 to 8 digits at p.
inline uint64_t few_digits(const char* p, size_t n) {
    const uint64_t zeros = 0x3030303030303030ull >> (4 * n) >> (4 * n);
    return eight_digits(load_u64(p) << (64 - 8 * n) | zeros);
}

// The value of the digits at p; returns the position after them, or nullptr if they are none or
// more than 15.
inline const char* read_digits(const char* p, uint64_t* value) {
    constexpr std::array<uint64_t, 8> kPowers = {1,      10,      100,       1000,
                                                 10'000, 100'000, 1'000'000, 10'000'000};
    const char* const end = skip_digits(p);
    const auto n = static_cast<size_t>(end - p);
    if (n - 1 >= 15) return nullptr;
    if (n <= 8) {
        *value = few_digits(p, n);
    } else {
        *value = eight_digits(load_u64(p)) * kPowers[n - 8] + few_digits(p + 8, n - 8);
    }
    return end;
}

// The nanoseconds in a number at p that is digits alone or digits, a point and 3 digits (which
// are microseconds); returns the position after it, or nullptr for any other text.
inline const char* read_plain_ns(const char* p, int64_t* ns) {
    uint64_t whole;
    p = read_digits(p, &whole);
    if (p == nullptr) return nullptr;
    uint64_t value = whole * 1000;
    if (*p == '.') {
        if (!is_digit(p[1]) || !is_digit(p[2]) || !is_digit(p[3]) || is_digit(p[4])) return nullptr;
        value += static_cast<uint64_t>(p[1] * 100 + p[2] * 10 + p[3] - 111 * '0');
        p += 4;
    }
    if ((*p | 0x20) == 'e') return nullptr;
    *ns = static_cast<int64_t>(value);
    return p;
}

}  // namespace trnscope
