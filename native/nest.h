// Nesting of the slices of one track: parents, lanes and self times by one rule.
//
// Slices are taken by start, longer first, then input order. A slice's parent is the innermost
// open slice that contains it. A slice that starts inside an open slice and ends after it closes
// that slice: the two become siblings, and the later one goes to the next free lane below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

class TrackNesting {
  public:
    // start/dur: n values in ns, dur >= 0; both must outlive this object.
    TrackNesting(const int64_t* start, const int64_t* dur, size_t n);

    // Columns in lane order (by depth, then start).
    std::vector<uint32_t> rows() const;    // input row
    std::vector<uint16_t> depth() const;   // lane
    std::vector<uint32_t> parent() const;  // lane-order position; a root holds its own
    std::vector<int64_t> self_ns() const;  // without children; sums to the union of the track
    // Time without the nearest descendants that are not Python frames; is_python by input row.
    std::vector<int64_t> op_self_ns(const uint8_t* is_python) const;

    // Lane-order position of the innermost slice that holds time ts and is wanted (by input row;
    // null wants all). A slice that starts exactly at ts counts as holding it. False: none.
    bool innermost(int64_t ts, const uint8_t* wanted, uint32_t* position) const;

    size_t size() const { return sorted_.size(); }

  private:
    int64_t start(size_t i) const { return start_[sorted_[i]]; }
    int64_t end(size_t i) const { return start_[sorted_[i]] + dur_[sorted_[i]]; }
    void nest();
    template <typename T>
    std::vector<T> in_lane_order(const std::vector<T>& values) const;

    const int64_t* start_;
    const int64_t* dur_;
    std::vector<uint32_t> sorted_;  // input rows in nesting order; indexes what follows
    std::vector<uint16_t> depth_;
    std::vector<uint32_t> parent_;         // nesting order
    std::vector<uint32_t> lane_position_;  // nesting order -> lane order
};

}  // namespace trnscope
