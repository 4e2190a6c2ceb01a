#include "call_survey.h"

#include <stdexcept>

namespace trnscope {

uint32_t call_above(const SliceColumns& in, const KeyRanges& keys, uint32_t slice) {
    uint32_t at = slice;
    for (size_t steps = 0; in.parent[at] != at; ++steps) {
        if (steps > in.num_slices) throw std::invalid_argument("slices are above each other");
        at = in.parent[at];
        if (keys.first[in.kind[at]] < keys.num_call_keys) return at;
    }
    return slice;
}

bool survey_calls(const SliceColumns& in, const KeyRanges& keys, CallSurvey* out) {
    for (size_t i = 0; i < in.num_slices; ++i) {
        if (in.parent[i] >= in.num_slices) return false;
    }
    out->key.resize(in.num_slices);
    for (auto* sums : {&out->count, &out->total_ns, &out->self_ns}) sums->assign(keys.num_keys, 0);
    for (size_t i = 0; i < in.num_slices; ++i) {
        const auto id = static_cast<uint32_t>(i);
        const uint32_t parent = in.parent[i];
        const size_t key = size_t{keys.first[in.kind[i]]} + in.name[i];
        if (key >= keys.num_keys) return false;
        out->key[i] = static_cast<uint32_t>(key);
        ++out->count[key];
        out->total_ns[key] += in.dur_ns[i];
        out->self_ns[key] += in.self_ns[i];
        const bool root = parent == id;
        if (in.depth[i] != (root ? 0 : in.depth[parent] + 1)) out->overlapping.push_back(id);
        if (key >= keys.num_call_keys) continue;
        if (in.dur_ns[i] == 0) out->empty.push_back(id);
        if (root) continue;
        const uint32_t above = call_above(in, keys, id);
        if (above == id || in.name[above] != in.name[i]) continue;
        out->same_name.push_back(id);
        out->same_above.push_back(above);
    }
    return true;
}

std::vector<uint32_t> outer_calls(const uint32_t* key, const uint32_t* above, size_t num_slices,
                                  uint32_t num_call_keys) {
    std::vector<uint32_t> outer;
    for (size_t i = 0; i < num_slices; ++i) {
        if (key[i] >= num_call_keys) continue;
        const uint32_t around = above[i];
        if (around == i || around >= num_slices || key[around] >= num_call_keys) {
            outer.push_back(static_cast<uint32_t>(i));
        }
    }
    return outer;
}

}  // namespace trnscope
