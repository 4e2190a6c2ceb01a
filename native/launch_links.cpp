#include "launch_links.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

namespace trnscope {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr ptrdiff_t kNear = 64;  // rows to look through before a search of them all

// Ids that are asked for, each with the first slice that has it. Id 0 is never in it.
class FirstWithId {
  public:
    explicit FirstWithId(size_t num_ids) {
        int bits = 4;
        while ((size_t{1} << bits) < 2 * num_ids) ++bits;
        shift_ = 64 - bits;
        slots_.resize(size_t{1} << bits);
    }

    void ask(uint64_t id) {
        if (id != 0) slots_[slot(id)].id = id;
    }

    // Slices come rising.
    void offer(uint64_t id, uint32_t slice) {
        if (id == 0) return;
        Slot& at = slots_[slot(id)];
        if (at.id == id && at.slice == kNone) at.slice = slice;
    }

    uint32_t find(uint64_t id) const { return id == 0 ? kNone : slots_[slot(id)].slice; }

  private:
    struct Slot {
        uint64_t id = 0;
        uint32_t slice = kNone;
    };

    // Where the id is or would be.
    size_t slot(uint64_t id) const {
        size_t at = (id * 0x9E3779B97F4A7C15u) >> shift_;
        while (slots_[at].id != id && slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
        return at;
    }

    int shift_;
    std::vector<Slot> slots_;
};

// The id of each slice asked for (rising), 0 without one. `has`, if given, gets whether it has one,
// though it may be 0.
std::vector<uint64_t> ids_of(const IdColumn& ids, const std::vector<uint32_t>& slices,
                             std::vector<uint8_t>* has = nullptr) {
    std::vector<uint64_t> found(slices.size(), 0);
    const uint32_t* at = ids.slice;
    const uint32_t* const end = ids.slice + ids.n;
    for (size_t i = 0; i < slices.size(); ++i) {
        at = std::lower_bound(at, at + std::min<ptrdiff_t>(kNear, end - at), slices[i]);
        if (at != end && *at < slices[i]) at = std::lower_bound(at, end, slices[i]);
        if (at == end || *at != slices[i]) continue;
        found[i] = ids.value[at - ids.slice];
        if (has != nullptr) (*has)[i] = 1;
    }
    return found;
}

// For each id: the first slice of the kind that has it.
std::vector<uint32_t> first_of_kind(const LaunchInput& in, const IdColumn& ids, uint8_t kind,
                                    const std::vector<uint64_t>& asked) {
    FirstWithId first(asked.size());
    for (uint64_t id : asked) first.ask(id);
    for (size_t i = 0; i < ids.n; ++i) {
        if (in.kind[ids.slice[i]] == kind) first.offer(ids.value[i], ids.slice[i]);
    }
    std::vector<uint32_t> slices(asked.size());
    for (size_t i = 0; i < asked.size(); ++i) slices[i] = first.find(asked[i]);
    return slices;
}

std::vector<uint32_t> device_work(const LaunchInput& in) {
    std::array<bool, 256> is_device{};
    for (uint8_t kind : in.device_kinds) is_device[kind] = true;
    std::vector<uint32_t> slices;
    for (size_t i = 0; i < in.num_slices; ++i) {
        if (is_device[in.kind[i]]) slices.push_back(static_cast<uint32_t>(i));
    }
    return slices;
}

// Fills in what is still missing in `links`, for the rows that `wanted` says, by external id.
template <typename Wanted>
void link_by_external_id(const LaunchInput& in, uint8_t kind, const std::vector<uint32_t>& device,
                         const Wanted& wanted, std::vector<uint32_t>* links) {
    std::vector<size_t> rows;
    std::vector<uint32_t> slices;
    for (size_t i = 0; i < device.size(); ++i) {
        if ((*links)[i] != kNone || !wanted(i)) continue;
        rows.push_back(i);
        slices.push_back(device[i]);
    }
    if (rows.empty()) return;
    const auto found = first_of_kind(in, in.external_id, kind, ids_of(in.external_id, slices));
    for (size_t r = 0; r < rows.size(); ++r) (*links)[rows[r]] = found[r];
}

void link_by_flow(const LaunchInput& in, const std::vector<uint32_t>& device,
                  std::vector<uint32_t>* links) {
    if (std::find(links->begin(), links->end(), kNone) == links->end()) return;
    std::vector<uint8_t> linked(device.size());
    for (size_t i = 0; i < device.size(); ++i) linked[i] = (*links)[i] != kNone;
    for (size_t f = 0; f < in.num_flows; ++f) {
        if (in.kind[in.flow_out[f]] != in.call_kind) continue;
        const auto at = std::lower_bound(device.begin(), device.end(), in.flow_in[f]);
        if (at == device.end() || *at != in.flow_in[f]) continue;
        const auto row = static_cast<size_t>(at - device.begin());
        if (!linked[row]) (*links)[row] = in.flow_out[f];
        linked[row] = 1;
    }
}

// The nearest op at or above a slice.
uint32_t op_around(const LaunchInput& in, uint32_t slice) {
    for (size_t steps = 0; in.kind[slice] != in.op_kind && in.parent[slice] != slice; ++steps) {
        if (steps > in.num_slices) throw std::invalid_argument("slices are above each other");
        slice = in.parent[slice];
    }
    return in.kind[slice] == in.op_kind ? slice : kNone;
}

void split_links(std::vector<uint32_t>&& links, std::vector<uint8_t>* has,
                 std::vector<uint32_t>* slices) {
    has->resize(links.size());
    for (size_t i = 0; i < links.size(); ++i) {
        (*has)[i] = links[i] != kNone;
        if (links[i] == kNone) links[i] = 0;
    }
    *slices = std::move(links);
}

}  // namespace

LaunchRows find_launches(const LaunchInput& in) {
    LaunchRows out;
    out.device_slice = device_work(in);
    const std::vector<uint32_t>& device = out.device_slice;
    if (device.empty()) return out;
    std::vector<uint8_t> correlated(device.size(), 0);
    std::vector<uint32_t> calls = first_of_kind(in, in.correlation, in.call_kind,
                                                ids_of(in.correlation, device, &correlated));
    link_by_flow(in, device, &calls);
    link_by_external_id(in, in.call_kind, device, [&](size_t i) { return !correlated[i]; }, &calls);
    std::vector<uint32_t> ops(device.size());
    for (size_t i = 0; i < device.size(); ++i) {
        ops[i] = calls[i] == kNone ? kNone : op_around(in, calls[i]);
    }
    link_by_external_id(in, in.op_kind, device, [](size_t) { return true; }, &ops);
    split_links(std::move(calls), &out.has_launch, &out.launch_slice);
    split_links(std::move(ops), &out.has_op, &out.op_slice);
    return out;
}

}  // namespace trnscope
