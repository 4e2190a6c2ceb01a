#include "scan_predict.h"

#include <algorithm>

namespace trnscope {

void KeyPredictor::learn(std::string_view text, bool keep, std::string_view key, uint32_t code) {
    const uint32_t to = node_of(key, code);
    if (keep && text.size() <= kMaxText) {
        Node& node = nodes_[at_];
        const bool is_full = node.num_links == kMaxLinks;
        Link& link = node.links[is_full ? node.oldest++ % kMaxLinks : node.num_links++];
        link.text.fill('\0');
        std::copy(text.begin(), text.end(), link.text.begin());
        for (size_t i = 0; i < link.masks.size(); ++i) {
            const size_t left = text.size() - std::min(text.size(), 16 * i);
            link.masks[i] = left >= 16 ? 0xFFFFu : (1u << left) - 1;
        }
        link.length = static_cast<uint32_t>(text.size());
        link.to = to;
    }
    at_ = to;
}

uint32_t KeyPredictor::node_of(std::string_view key, uint32_t code) {
    const auto next = static_cast<uint32_t>(nodes_.size());
    if (next >= kMaxNodes) {
        const auto known = node_by_key_.find(std::string(key));
        if (known != node_by_key_.end()) return known->second;
        const auto [place, is_new] = node_by_code_.try_emplace(code, next);
        if (is_new) nodes_.push_back({code});
        return place->second;
    }
    const auto [place, is_new] = node_by_key_.try_emplace(std::string(key), next);
    if (is_new) nodes_.push_back({code});
    return place->second;
}

}  // namespace trnscope
