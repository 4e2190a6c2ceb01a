#include "collectives.h"

namespace trnscope::sim {
namespace {

thread_local CollectiveMark mark_here;

std::string key_of(const CollectiveInfo& info) {
    std::string key = info.call + '\n' + info.dtype + '\n' + info.group_name + '\n' +
                      info.group_description + '\n';
    for (const std::int64_t value :
         {info.in_elements, info.out_elements, info.rank, info.source, info.destination}) {
        key += std::to_string(value) + ' ';
    }
    return key + listed(info.in_splits) + listed(info.out_splits) + listed(info.ranks);
}

}  // namespace

Collectives& Collectives::instance() {
    static Collectives* collectives = new Collectives();
    return *collectives;
}

std::int32_t Collectives::number_of(const CollectiveInfo& info) {
    std::lock_guard lock(mutex_);
    const auto [place, is_new] =
        numbers_.try_emplace(key_of(info), static_cast<std::int32_t>(all_.size()));
    if (is_new) all_.push_back(info);
    return place->second;
}

CollectiveInfo Collectives::at(std::int32_t number) const {
    std::lock_guard lock(mutex_);
    return all_.at(static_cast<std::size_t>(number));
}

std::vector<CollectiveInfo> Collectives::all() const {
    std::lock_guard lock(mutex_);
    return {all_.begin(), all_.end()};
}

CollectiveScope::CollectiveScope(CollectiveMark mark) {
    mark_here = mark;
}

CollectiveScope::~CollectiveScope() {
    mark_here = {};
}

CollectiveMark current_collective() {
    return mark_here;
}

std::string listed(const std::vector<std::int64_t>& values) {
    std::string text = "[";
    for (const std::int64_t value : values) {
        if (text.size() > 1) text += ", ";
        text += std::to_string(value);
    }
    return text + "]";
}

}  // namespace trnscope::sim
