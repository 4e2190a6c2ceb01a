// Traces repeat themselves: which key, spelled and spaced how, follows which.
//
// Between two values of an object stand a comma, a key, a colon and whitespace. Writers spell
// that text the same way in every event, so one comparison with the text of last time replaces
// reading it. An unexpected text is read as usual and remembered.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scan_simd.h"

namespace trnscope {

class KeyPredictor {
  public:
    // `nothing` is the code of the state before the first member.
    explicit KeyPredictor(uint32_t nothing) { nodes_.push_back({nothing}); }

    // Begins an object.
    void reset() { at_ = 0; }

    // If the text at p is one that followed the last key before: moves *p to after it, which is
    // where a value or whitespace is, and returns true; code() tells the key.
    bool follow(const char** p) {
        Node& node = nodes_[at_];
        for (uint32_t i = 0; i < node.num_links; ++i) {
            const Link& link = node.links[i];
            if (!matches(*p, link)) continue;
            *p += link.length;
            at_ = link.to;
            return true;
        }
        return false;
    }

    // What the caller stored for the last key.
    uint32_t code() const { return nodes_[at_].code; }

    // The text between the last key's value and the next value was read as usual: it holds `key`,
    // which means `code` to the caller. It is remembered if `keep`.
    void learn(std::string_view text, bool keep, std::string_view key, uint32_t code);

  private:
    static constexpr size_t kMaxText = 48;  // less than kPadding
    static constexpr size_t kMaxLinks = 4;
    static constexpr size_t kMaxNodes = 1024;

    struct Link {
        std::array<char, kMaxText> text{};
        std::array<uint32_t, kMaxText / 16> masks{};
        uint32_t length = 0;
        uint32_t to = 0;
    };
    struct Node {
        uint32_t code;
        uint32_t num_links = 0;
        uint32_t oldest = 0;
        std::array<Link, kMaxLinks> links{};
    };

    static bool matches(const char* p, const Link& link) {
#ifdef TRNSCOPE_SSE2
        for (size_t i = 0; i * 16 < link.length; ++i) {
            const auto* text = reinterpret_cast<const __m128i*>(link.text.data() + 16 * i);
            const auto* other = reinterpret_cast<const __m128i*>(p + 16 * i);
            const auto equal = static_cast<uint32_t>(
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(text), _mm_loadu_si128(other))));
            if ((equal & link.masks[i]) != link.masks[i]) return false;
        }
        return true;
#else
        return std::memcmp(p, link.text.data(), link.length) == 0;
#endif
    }

    uint32_t node_of(std::string_view key, uint32_t code);

    std::vector<Node> nodes_;
    std::unordered_map<std::string, uint32_t> node_by_key_;
    std::unordered_map<uint32_t, uint32_t> node_by_code_;  // for keys beyond kMaxNodes
    uint32_t at_ = 0;
};

}  // namespace trnscope
