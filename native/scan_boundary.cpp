#include "scan_boundary.h"

#include <array>
#include <cstring>

namespace trnscope {
namespace {

constexpr std::array<std::string_view, 14> kEventKeys = {
    "ph", "name", "cat", "pid", "tid", "ts", "dur", "args", "id", "s", "bp", "id2", "cname", "tts"};

// Like skip_space, but at most kMaxBoundarySpace far; nullptr beyond.
const char* skip_some_space(const char* p) {
    const char* const after = skip_space(p);
    return static_cast<size_t>(after - p) <= kMaxBoundarySpace ? after : nullptr;
}

// Whether `key` and a quote are at p.
bool is_key_at(const char* p, const char* end, std::string_view key) {
    return static_cast<size_t>(end - p) > key.size() && p[key.size()] == '"' &&
           std::memcmp(p, key.data(), key.size()) == 0;
}

size_t event_key_length(const char* p, const char* end) {
    for (const std::string_view key : kEventKeys) {
        if (is_key_at(p, end, key)) return key.size();
    }
    return 0;
}

}  // namespace

Boundary begins_event(const char* p, const char* end, bool* is_ph) {
    constexpr size_t kLongestKey = 5;
    p = skip_some_space(p + 1);
    if (p == nullptr) return Boundary::kNo;
    if (p >= end) return Boundary::kCutOff;
    if (*p != '"') return Boundary::kNo;
    const char* const key = p + 1;
    const size_t length = event_key_length(key, end);
    if (length == 0) {
        const bool cut_off = static_cast<size_t>(end - key) <= kLongestKey &&
                             std::memchr(key, '"', static_cast<size_t>(end - key)) == nullptr;
        return cut_off ? Boundary::kCutOff : Boundary::kNo;
    }
    p = skip_some_space(key + length + 1);
    if (p == nullptr) return Boundary::kNo;
    if (p >= end) return Boundary::kCutOff;
    *is_ph = length == 2 && key[0] == 'p' && key[1] == 'h';
    return *p == ':' ? Boundary::kYes : Boundary::kNo;
}

const char* find_next_event(const char* p, const char* end) {
    while (p < end) {
        p = static_cast<const char*>(std::memchr(p, '}', static_cast<size_t>(end - p)));
        if (p == nullptr) return nullptr;
        const char* q = skip_some_space(++p);
        if (q == nullptr || *q != ',') continue;
        q = skip_some_space(q + 1);
        bool is_ph;
        if (q == nullptr || *q != '{' || q >= end) continue;
        if (begins_event(q, end, &is_ph) == Boundary::kYes) return q;
    }
    return nullptr;
}

char previous_character(const char* begin, const char* p) {
    for (size_t n = 0; p > begin && n <= kMaxBoundarySpace; ++n) {
        if (!is_space(*--p)) return *p;
    }
    return '\0';
}

}  // namespace trnscope
