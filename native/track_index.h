// Turns the slices of one track from file order into lane-ordered rows of the slices table.
//
// The rule of nesting: slices are taken by start, longer first, then file order. A slice's parent
// is the innermost open slice that contains it. A slice that starts inside an open slice and ends
// after it closes that slice: the two become siblings, and the later one goes to the next free
// lane below.
//
// Memory is about 14 bytes a slice: columns stay in files on both sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

// Input columns, by event index.
struct SourceColumns {
    const int64_t* start_ns;
    const int64_t* dur_ns;  // >= 0
    const uint8_t* kind;
    const uint16_t* category;
    const uint32_t* name;
    const uint64_t* args_offset;
    const uint32_t* args_length;
    size_t num_events;
    bool release_mapped;  // the columns are mapped files; pages are given back after use
};

// Where each column of the slices table begins in the output file.
struct OutputOffsets {
    int64_t start_ns, dur_ns, self_ns, op_self_ns, kind, category, name, track, depth, parent,
        args_offset, args_length;
};

// Asks for the innermost slice at points in time. A slice that starts exactly then holds the point.
// The points to ask about are rows of the columns, by rising time.
struct PointQueries {
    const int64_t* ts_ns;
    const uint32_t* rows;
    size_t count;
    bool ops_only;
    uint8_t* found;   // out, by row: 1 where there is one, else left
    uint32_t* slice;  // out, by row: its id
};

// Indices of points by track (below num_tracks), then time, then index. `first` gets num_tracks + 1
// offsets.
std::vector<uint32_t> point_order(const uint32_t* track, const int64_t* ts_ns, size_t n,
                                  size_t num_tracks, std::vector<int64_t>* first);

struct IndexedTrack {
    std::vector<int64_t> lane_rows;  // of each lane
    size_t num_too_deep;  // slices below the deepest lane: put there too, where they overlap and
                          // the rows' own times may be exchanged
};

class TrackIndexer {
  public:
    // python_kind: slices that the operator tree leaves out; op_kind: what ops_only asks for.
    TrackIndexer(const SourceColumns& in, int fd, const OutputOffsets& out, uint8_t python_kind,
                 uint8_t op_kind)
        : in_(in), fd_(fd), out_(out), python_kind_(python_kind), op_kind_(op_kind) {}

    // Indexes the slices `events` (event indices, in file order; left in nesting order) as rows
    // first, first + 1 ... of the table. Fills slice_of_event for them. Throws
    // std::system_error when the file cannot be written.
    IndexedTrack index(uint32_t track, uint32_t* events, size_t n, uint32_t first,
                       const std::vector<PointQueries>& queries, uint32_t* slice_of_event) const;

  private:
    SourceColumns in_;
    int fd_;
    OutputOffsets out_;
    uint8_t python_kind_;
    uint8_t op_kind_;
};

}  // namespace trnscope
