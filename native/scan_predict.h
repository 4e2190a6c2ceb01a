// Traces repeat themselves: which key, spelled and spaced how, follows which.
//
// Between two values of an object stand a comma, a key, a colon and whitespace. Writers spell
// that text the same way in every event, so one comparison with the text of last time replaces
// reading it. An unexpected text is read as usual and remembered.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scan_simd.h"

namespace trnscope {

class KeyPredictor {
    struct Node;

  public:
    // A place between two members.
    using Place = Node*;

    // Told by code() after the object's closing brace.
    static constexpr uint32_t kClosed = 0xFFFFFFFEu;

    // `nothing` is the code of the state before the first member.
    explicit KeyPredictor(uint32_t nothing) {
        nodes_.emplace_back(nothing);
        nodes_.emplace_back(kClosed);
        reset();
    }
    KeyPredictor(const KeyPredictor&) = delete;
    KeyPredictor& operator=(const KeyPredictor&) = delete;

    // Begins an object.
    void reset() { at_ = &nodes_.front(); }

    // If the text at p is one that followed the last key before: moves *p to after it, which is
    // where a value or whitespace is, or after the closing brace, and returns true; code() tells
    // the key. What followed last time is tried first.
    bool follow(const char** p) {
        const Link* link = at_->latest;
        if (link == nullptr || !matches(*p, *link)) {
            link = find_other(*p);
            if (link == nullptr) return false;
        }
        *p += link->length;
        at_ = link->to;
        return true;
    }

    Place place() const { return at_; }
    void resume(Place place) { at_ = place; }

    // What the caller stored for the last key.
    uint32_t code() const { return at_->code; }

    // The text between the last key's value and the next value was read as usual: it holds `key`,
    // which means `code` to the caller. It is remembered if `keep`.
    void learn(std::string_view text, bool keep, std::string_view key, uint32_t code);

    // The text from the last key's value to after the closing brace was read as usual.
    void learn_end(std::string_view text, bool keep);

  private:
    static constexpr size_t kMaxText = 48;  // less than kPadding
    static constexpr size_t kMaxLinks = 8;
    static constexpr size_t kMaxNodes = 256;

    // The masks tell which of each 16 bytes are of the text.
    struct Link {
        std::array<char, kMaxText> text{};
        std::array<uint32_t, kMaxText / 16> masks{};
        uint32_t length = 0;
        Node* to = nullptr;
    };
    struct Node {
        explicit Node(uint32_t c) : code(c) {}
        Node(const Node&) = delete;
        Node& operator=(const Node&) = delete;

        uint32_t code;
        uint32_t num_links = 0;
        uint32_t oldest = 0;
        const Link* latest = nullptr;  // the one that matched last time
        const Link* former = nullptr;  // the one before
        std::array<Link, kMaxLinks> links{};
    };

    static bool matches(const char* p, const Link& link) {
#ifdef TRNSCOPE_SSE2
        if (!matches_block(p, link, 0)) return false;
        if (link.length <= 16) return true;
        return matches_block(p, link, 1) && (link.length <= 32 || matches_block(p, link, 2));
#else
        return std::memcmp(p, link.text.data(), link.length) == 0;
#endif
    }

#ifdef TRNSCOPE_SSE2
    static bool matches_block(const char* p, const Link& link, size_t i) {
        const auto* text = reinterpret_cast<const __m128i*>(link.text.data() + 16 * i);
        const auto* other = reinterpret_cast<const __m128i*>(p + 16 * i);
        const auto equal = static_cast<uint32_t>(
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(text), _mm_loadu_si128(other))));
        return (~equal & link.masks[i]) == 0;
    }
#endif

    const Link* find_other(const char* p);
    void add_link(std::string_view text, Node* to);
    Node* node_of(std::string_view key, uint32_t code);

    std::deque<Node> nodes_;  // before the first key, after the last, and one for each key
    std::unordered_map<std::string, Node*> node_by_key_;
    std::unordered_map<uint32_t, Node*> node_by_code_;  // for keys beyond kMaxNodes
    Node* at_;
};

}  // namespace trnscope
