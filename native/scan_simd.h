// Searches over text that is followed by kPadding zero bytes: SSE2, or portable words.
//
// The zero bytes stop every search at the end of the text, so that no loop compares pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(TRNSCOPE_NO_SIMD)
#define TRNSCOPE_SSE2 1
#include <emmintrin.h>
#endif

// What every event goes through, and what only unusual ones do.
#define TRNSCOPE_INLINE __attribute__((always_inline)) inline
#define TRNSCOPE_NOINLINE __attribute__((noinline))

namespace trnscope {

constexpr size_t kPadding = 64;

inline bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Little-endian 8 bytes at p, whatever the machine's order.
inline uint64_t load_u64(const char* p) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

// The first `length` (at most 8) of the 8 bytes at p; the others are zero.
inline uint64_t load_prefix(const char* p, size_t length) {
    const uint64_t word = load_u64(p);
    return length >= 8 ? word : word & ((uint64_t{1} << (8 * length)) - 1);
}

// Whether the first n bytes are the same. Both are readable for 16 bytes beyond those.
inline bool equal_bytes(const char* a, const char* b, size_t n) {
#ifdef TRNSCOPE_SSE2
    const auto equal_mask = [](const char* p, const char* q) {
        const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
        return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right)));
    };
    for (; n > 16; a += 16, b += 16, n -= 16) {
        if (equal_mask(a, b) != 0xFFFFu) return false;
    }
    return (~equal_mask(a, b) & ((1u << n) - 1)) == 0;
#else
    for (; n > 8; a += 8, b += 8, n -= 8) {
        if (load_u64(a) != load_u64(b)) return false;
    }
    return load_prefix(a, n) == load_prefix(b, n);
#endif
}

namespace detail {

#ifdef TRNSCOPE_SSE2
constexpr size_t kStride = 16;

inline uint32_t not_space_mask(const char* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i blank = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
    const __m128i other = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t')),
                                       _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(blank, other))) ^ 0xFFFFu;
}

inline uint32_t special_mask(const char* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                      _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    // As signed numbers, control characters and all bytes from 0x80 up are below 0x20.
    const __m128i odd = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(ends, odd)));
}

inline unsigned first_in(uint32_t mask) {
    return static_cast<unsigned>(__builtin_ctz(mask));
}
#else
constexpr size_t kStride = 8;
constexpr uint64_t kOnes = 0x0101010101010101ull;
constexpr uint64_t kHighs = 0x8080808080808080ull;

// High bit of each byte below `limit` (at most 0x80); a byte after a hit may be wrong, so only
// the first hit counts.
inline uint64_t below(uint64_t word, uint64_t limit) {
    return (word - kOnes * limit) & ~word & kHighs;
}
inline uint64_t equal(uint64_t word, unsigned char c) {
    return below(word ^ (kOnes * c), 1);
}

inline uint64_t not_space_mask(const char* p) {
    uint64_t mask = 0;
    for (size_t i = 0; i < kStride; ++i) {
        if (!is_space(p[i])) mask |= uint64_t{0x80} << (8 * i);
    }
    return mask;
}

inline uint64_t special_mask(const char* p) {
    const uint64_t word = load_u64(p);
    return equal(word, '"') | equal(word, '\\') | below(word, 0x20) | (word & kHighs);
}

inline unsigned first_in(uint64_t mask) {
    return static_cast<unsigned>(__builtin_ctzll(mask)) / 8;
}
#endif

}  // namespace detail

// First byte from p on that is not JSON whitespace.
inline const char* skip_space(const char* p) {
    if (!is_space(*p)) return p;
    ++p;
    if (!is_space(*p)) return p;
    for (;; p += detail::kStride) {
        if (const auto mask = detail::not_space_mask(p)) return p + detail::first_in(mask);
    }
}

// First byte from p on that is no decimal digit.
inline const char* skip_digits(const char* p) {
#ifdef TRNSCOPE_SSE2
    for (;; p += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const __m128i value = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
        const __m128i digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
        const uint32_t mask = static_cast<uint32_t>(_mm_movemask_epi8(digit)) ^ 0xFFFFu;
        if (mask != 0) return p + detail::first_in(mask);
    }
#else
    while (static_cast<unsigned char>(*p - '0') < 10) ++p;
    return p;
#endif
}

// First byte from p on that is a quote, a backslash, a control character or not ASCII.
inline const char* find_special(const char* p) {
    for (;; p += detail::kStride) {
        if (const auto mask = detail::special_mask(p)) return p + detail::first_in(mask);
    }
}

}  // namespace trnscope
