#include "nest.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sort.h"

namespace trnscope {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
constexpr uint16_t kDeepest = std::numeric_limits<uint16_t>::max();

struct Open {
    int64_t end;
    int64_t covered_until;  // time up to here is booked to children (or to an earlier sibling)
    uint32_t position;      // nesting order
};

// Closes what ended before the slice begins, and what the slice outlives.
void close_finished(std::vector<Open>* stack, int64_t start, int64_t end) {
    while (!stack->empty() && (start >= stack->back().end || end > stack->back().end)) {
        stack->pop_back();
    }
}

// The first lane at or below `depth` that is free at `start`.
uint16_t free_lane(std::vector<int64_t>* lane_end, size_t depth, int64_t start) {
    while (depth < lane_end->size() && (*lane_end)[depth] > start) ++depth;
    depth = std::min<size_t>(depth, kDeepest);
    if (depth >= lane_end->size()) lane_end->resize(depth + 1, kNever);
    return static_cast<uint16_t>(depth);
}

}  // namespace

TrackNesting::TrackNesting(const int64_t* start, const int64_t* dur, size_t n)
    : start_(start), dur_(dur), sorted_(slice_order(start, dur, n)), depth_(n), parent_(n) {
    nest();
    const size_t num_lanes =
        n == 0 ? 0 : *std::max_element(depth_.begin(), depth_.end()) + size_t{1};
    std::vector<uint32_t> next(num_lanes + 1, 0);
    for (uint16_t depth : depth_) ++next[depth + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    lane_position_.resize(n);
    for (size_t i = 0; i < n; ++i) lane_position_[i] = next[depth_[i]]++;
}

void TrackNesting::nest() {
    std::vector<Open> stack;
    std::vector<int64_t> lane_end;
    for (size_t i = 0; i < sorted_.size(); ++i) {
        const int64_t from = start(i), to = end(i);
        close_finished(&stack, from, to);
        parent_[i] = stack.empty() ? static_cast<uint32_t>(i) : stack.back().position;
        const size_t lane = stack.empty() ? 0 : depth_[stack.back().position] + size_t{1};
        depth_[i] = free_lane(&lane_end, lane, from);
        lane_end[depth_[i]] = std::max(lane_end[depth_[i]], to);
        stack.push_back({to, from, static_cast<uint32_t>(i)});
    }
}

template <typename T>
std::vector<T> TrackNesting::in_lane_order(const std::vector<T>& values) const {
    std::vector<T> result(values.size());
    for (size_t i = 0; i < values.size(); ++i) result[lane_position_[i]] = values[i];
    return result;
}

std::vector<uint32_t> TrackNesting::rows() const {
    return in_lane_order(sorted_);
}

std::vector<uint16_t> TrackNesting::depth() const {
    return in_lane_order(depth_);
}

std::vector<uint32_t> TrackNesting::parent() const {
    std::vector<uint32_t> result(parent_.size());
    for (size_t i = 0; i < parent_.size(); ++i) {
        result[lane_position_[i]] = lane_position_[parent_[i]];
    }
    return result;
}

std::vector<int64_t> TrackNesting::self_ns() const {
    std::vector<int64_t> self(sorted_.size());
    std::vector<Open> stack;
    int64_t roots_covered_until = kNever;
    for (size_t i = 0; i < sorted_.size(); ++i) {
        const int64_t to = end(i);
        close_finished(&stack, start(i), to);
        int64_t* covered = stack.empty() ? &roots_covered_until : &stack.back().covered_until;
        const int64_t own_from = std::min(to, std::max(start(i), *covered));
        self[lane_position_[i]] = to - own_from;
        if (!stack.empty()) self[lane_position_[stack.back().position]] -= to - own_from;
        *covered = std::max(*covered, to);
        stack.push_back({to, own_from, static_cast<uint32_t>(i)});
    }
    return self;
}

std::vector<int64_t> TrackNesting::op_self_ns(const uint8_t* is_python) const {
    std::vector<int64_t> self = self_ns();
    std::vector<Open> stack;
    for (size_t i = 0; i < sorted_.size(); ++i) {
        if (is_python[sorted_[i]]) continue;
        const int64_t from = start(i), to = end(i);
        close_finished(&stack, from, to);
        self[lane_position_[i]] = to - from;
        if (!stack.empty()) {
            Open& parent = stack.back();
            const int64_t uncovered_from = std::min(to, std::max(from, parent.covered_until));
            self[lane_position_[parent.position]] -= to - uncovered_from;
            parent.covered_until = std::max(parent.covered_until, to);
        }
        stack.push_back({to, from, static_cast<uint32_t>(i)});
    }
    return self;
}

bool TrackNesting::innermost(int64_t ts, const uint8_t* wanted, uint32_t* position) const {
    const auto after =
        std::upper_bound(sorted_.begin(), sorted_.end(), ts,
                         [this](int64_t value, uint32_t row) { return value < start_[row]; });
    if (after == sorted_.begin()) return false;
    size_t i = static_cast<size_t>(after - sorted_.begin()) - 1;
    while (true) {
        const bool holds = start(i) == ts || end(i) > ts;
        if (holds && (wanted == nullptr || wanted[sorted_[i]])) {
            *position = lane_position_[i];
            return true;
        }
        if (parent_[i] == i) return false;
        i = parent_[i];
    }
}

}  // namespace trnscope
