#include "scan_predict.h"

#include <algorithm>

namespace trnscope {

void KeyPredictor::learn(std::string_view text, bool keep, std::string_view key, uint32_t code) {
    Node* const to = node_of(key, code);
    if (keep) add_link(text, to);
    at_ = to;
}

void KeyPredictor::learn_end(std::string_view text, bool keep) {
    Node* const end = &nodes_[1];
    if (keep) add_link(text, end);
    at_ = end;
}

// A link of the present node, other than the latest, whose text is at p.
const KeyPredictor::Link* KeyPredictor::find_other(const char* p) {
    const Link* found = at_->former;
    if (found == nullptr || !matches(p, *found)) {
        const Link* const end = at_->links.data() + at_->num_links;
        for (found = at_->links.data(); found < end && !matches(p, *found);) ++found;
        if (found == end) return nullptr;
    }
    at_->former = at_->latest;
    at_->latest = found;
    return found;
}

void KeyPredictor::add_link(std::string_view text, Node* to) {
    if (text.size() > kMaxText) return;
    const bool is_full = at_->num_links == kMaxLinks;
    Link& link = at_->links[is_full ? at_->oldest++ % kMaxLinks : at_->num_links++];
    link.text.fill('\0');
    std::copy(text.begin(), text.end(), link.text.begin());
    for (size_t i = 0; i < link.masks.size(); ++i) {
        const size_t left = text.size() - std::min(text.size(), 16 * i);
        link.masks[i] = left >= 16 ? 0xFFFFu : (1u << left) - 1;
    }
    link.length = static_cast<uint32_t>(text.size());
    link.to = to;
    at_->former = at_->latest;
    at_->latest = &link;
}

KeyPredictor::Node* KeyPredictor::node_of(std::string_view key, uint32_t code) {
    const bool is_full = nodes_.size() >= kMaxNodes;
    const auto known = node_by_key_.find(std::string(key));
    if (known != node_by_key_.end()) return known->second;
    Node*& node = is_full ? node_by_code_[code] : node_by_key_[std::string(key)];
    if (node == nullptr) node = &nodes_.emplace_back(code);
    return node;
}

}  // namespace trnscope
