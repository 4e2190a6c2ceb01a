#include "track_index.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <thread>

#include "column_output.h"
#include "mapped.h"
#include "sort.h"

namespace trnscope {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
constexpr uint16_t kDeepest = std::numeric_limits<uint16_t>::max();
constexpr size_t kParallelRows = 100000;  // below, a thread costs more than it saves
constexpr size_t kChunkRows = 64 << 10;

// The slices of one track in nesting order.
struct Track {
    const SourceColumns& in;
    const uint32_t* events;
    size_t n;

    int64_t start(size_t i) const { return in.start_ns[events[i]]; }
    int64_t end(size_t i) const { return start(i) + in.dur_ns[events[i]]; }
    uint8_t kind(size_t i) const { return in.kind[events[i]]; }
};

// What ended before a slice begins, and what it outlives, is closed.
template <typename Entry, typename Close>
void close_finished(std::vector<Entry>* stack, int64_t start, int64_t end, const Close& close) {
    while (!stack->empty() && (start >= stack->back().end || end > stack->back().end)) {
        close(stack->back());
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

// The lane of each slice; counts those that lie in the deepest lane while another one does.
std::vector<uint16_t> assign_lanes(const Track& track, size_t* num_too_deep) {
    struct Open {
        int64_t end;
        uint16_t lane;
    };
    std::vector<uint16_t> lanes(track.n);
    std::vector<Open> stack;
    std::vector<int64_t> lane_end;
    for (size_t i = 0; i < track.n; ++i) {
        const int64_t start = track.start(i), end = track.end(i);
        close_finished(&stack, start, end, [](const Open&) {});
        lanes[i] = free_lane(&lane_end, stack.empty() ? 0 : stack.back().lane + size_t{1}, start);
        if (lane_end[lanes[i]] > start) ++*num_too_deep;
        lane_end[lanes[i]] = std::max(lane_end[lanes[i]], end);
        stack.push_back({end, lanes[i]});
    }
    return lanes;
}

// First row of each lane.
std::vector<uint32_t> lane_starts(const std::vector<int64_t>& counts, uint32_t first) {
    std::vector<uint32_t> starts(counts.size());
    for (size_t lane = 0; lane < counts.size(); ++lane) {
        starts[lane] = first;
        first += static_cast<uint32_t>(counts[lane]);
    }
    return starts;
}

// Sweeps over the track in nesting order with the open slices on a stack; makes the columns that
// depend on nesting, and answers the point queries. A slice is closed before the next one of its
// lane opens, so each lane's values come in order.
class Sweep {
  public:
    Sweep(const Track& track, const std::vector<uint16_t>& lanes,
          const std::vector<uint32_t>& lane_first, int fd, const OutputOffsets& out,
          uint8_t python_kind, uint8_t op_kind)
        : track_(track),
          lanes_(lanes),
          next_slice_(lane_first),
          parent_(fd, out.parent, lane_first, track.n),
          self_(fd, out.self_ns, lane_first, track.n),
          op_self_(fd, out.op_self_ns, lane_first, track.n),
          python_kind_(python_kind),
          op_kind_(op_kind) {}

    void run(const std::vector<PointQueries>& queries, uint32_t* slice_of_event) {
        for (const PointQueries& asked : queries) unanswered_.push_back(asked);
        answer_before(kNever);
        for (size_t i = 0; i < track_.n; ++i) {
            if (next_point_ < track_.start(i)) answer_before(track_.start(i));
            slice_of_event[track_.events[i]] = open(i);
        }
        for (const PointQueries& left : unanswered_) {
            for (size_t at = 0; at < left.count; ++at) answer(left, left.rows[at]);
        }
        constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
        close_finished(&stack_, kEnd, kEnd, [this](const Open& slice) { close(slice); });
        close_finished(&op_stack_, kEnd, kEnd, [this](const OpenOp& op) { close(op); });
        parent_.flush_all();
        self_.flush_all();
        op_self_.flush_all();
    }

  private:
    struct Open {
        int64_t start;
        int64_t end;
        int64_t covered_until;  // up to here, time is booked to children or an earlier sibling
        int64_t self;
        uint32_t slice;
        uint16_t lane;
        uint8_t kind;
    };
    struct OpenOp {
        int64_t end;
        int64_t covered_until;
        int64_t self;
        uint16_t lane;
    };

    // Books what [start, end) adds to the covered time; returns where the addition begins.
    static int64_t book(int64_t start, int64_t end, int64_t* covered_until) {
        const int64_t uncovered_from = std::min(end, std::max(start, *covered_until));
        *covered_until = std::max(*covered_until, end);
        return uncovered_from;
    }

    uint32_t open(size_t i) {
        const int64_t start = track_.start(i), end = track_.end(i);
        const uint16_t lane = lanes_[i];
        const uint32_t slice = next_slice_[lane]++;
        close_finished(&stack_, start, end, [this](const Open& open) { close(open); });
        // Ops that only ended are closed at any slice, so that their lane stays in order.
        close_finished(&op_stack_, start, start, [this](const OpenOp& op) { close(op); });
        Open* parent = stack_.empty() ? nullptr : &stack_.back();
        const int64_t own_from =
            book(start, end, parent ? &parent->covered_until : &roots_covered_until_);
        if (parent) parent->self -= end - own_from;
        parent_.append(lane, parent ? parent->slice : slice);
        stack_.push_back({start, end, own_from, end - own_from, slice, lane, track_.kind(i)});
        if (track_.kind(i) != python_kind_) open_op(start, end, lane);
        return slice;
    }

    void open_op(int64_t start, int64_t end, uint16_t lane) {
        close_finished(&op_stack_, start, end, [this](const OpenOp& op) { close(op); });
        if (!op_stack_.empty()) {
            OpenOp& parent = op_stack_.back();
            parent.self -= end - book(start, end, &parent.covered_until);
        }
        op_stack_.push_back({end, start, end - start, lane});
    }

    void close(const Open& slice) {
        self_.append(slice.lane, slice.self);
        if (slice.kind == python_kind_) op_self_.append(slice.lane, slice.self);
    }

    void close(const OpenOp& op) { op_self_.append(op.lane, op.self); }

    // Answers what is asked about times before `start`, and finds the next time asked about.
    void answer_before(int64_t start) {
        next_point_ = std::numeric_limits<int64_t>::max();
        for (PointQueries& left : unanswered_) {
            while (left.count > 0 && left.ts_ns[*left.rows] < start) {
                answer(left, *left.rows++);
                --left.count;
            }
            if (left.count > 0) next_point_ = std::min(next_point_, left.ts_ns[*left.rows]);
        }
    }

    void answer(const PointQueries& queries, uint32_t row) const {
        const int64_t ts = queries.ts_ns[row];
        for (auto open = stack_.rbegin(); open != stack_.rend(); ++open) {
            const bool holds = open->start == ts || open->end > ts;
            if (!holds || (queries.ops_only && open->kind != op_kind_)) continue;
            queries.found[row] = 1;
            queries.slice[row] = open->slice;
            return;
        }
    }

    const Track& track_;
    const std::vector<uint16_t>& lanes_;
    std::vector<uint32_t> next_slice_;
    LaneColumn<uint32_t> parent_;
    LaneColumn<int64_t> self_, op_self_;
    uint8_t python_kind_, op_kind_;
    int64_t roots_covered_until_ = kNever;
    std::vector<PointQueries> unanswered_;
    int64_t next_point_ = kNever;  // the earliest time in unanswered_
    std::vector<Open> stack_;
    std::vector<OpenOp> op_stack_;
};

template <typename T>
void copy_column(const T* in, const std::vector<uint32_t>& rows, size_t num_events, int fd,
                 int64_t offset, bool release_mapped) {
    std::vector<T> chunk;
    for (size_t at = 0; at < rows.size(); at += kChunkRows) {
        const size_t count = std::min(kChunkRows, rows.size() - at);
        chunk.resize(count);
        for (size_t i = 0; i < count; ++i) chunk[i] = in[rows[at + i]];
        write_at(fd, chunk.data(), count * sizeof(T),
                 offset + static_cast<int64_t>(at * sizeof(T)));
    }
    if (release_mapped && rows.size() >= kParallelRows) release_pages(in, num_events);
}

template <typename T>
void fill_column(T value, size_t n, int fd, int64_t offset) {
    const std::vector<T> chunk(std::min(n, kChunkRows), value);
    for (size_t at = 0; at < n; at += kChunkRows) {
        const size_t count = std::min(kChunkRows, n - at);
        write_at(fd, chunk.data(), count * sizeof(T),
                 offset + static_cast<int64_t>(at * sizeof(T)));
    }
}

// Writes the columns that are copies of the input, and those that are the same along a lane.
void copy_columns(const Track& track, const std::vector<uint16_t>& lanes,
                  const std::vector<int64_t>& lane_counts, uint32_t track_id, uint32_t first,
                  int fd, const OutputOffsets& out) {
    std::vector<uint32_t> rows(track.n);  // event of each row
    std::vector<uint32_t> next = lane_starts(lane_counts, 0);
    for (size_t i = 0; i < track.n; ++i) rows[next[lanes[i]]++] = track.events[i];
    const auto at = [first](int64_t offset, size_t width) {
        return offset + static_cast<int64_t>(first * width);
    };
    const auto copy = [&](const auto* column, int64_t offset) {
        copy_column(column, rows, track.in.num_events, fd, at(offset, sizeof(*column)),
                    track.in.release_mapped);
    };
    copy(track.in.start_ns, out.start_ns);
    copy(track.in.dur_ns, out.dur_ns);
    copy(track.in.kind, out.kind);
    copy(track.in.category, out.category);
    copy(track.in.name, out.name);
    copy(track.in.args_offset, out.args_offset);
    copy(track.in.args_length, out.args_length);
    fill_column(track_id, track.n, fd, at(out.track, 4));
    const std::vector<uint32_t> lane_first = lane_starts(lane_counts, first);
    for (size_t lane = 0; lane < lane_counts.size(); ++lane) {
        fill_column(static_cast<uint16_t>(lane), static_cast<size_t>(lane_counts[lane]), fd,
                    out.depth + static_cast<int64_t>(lane_first[lane]) * 2);
    }
}

// Runs both, at once where there is much to do; an exception of either reaches the caller.
template <typename A, typename B>
void run_both(bool parallel, const A& a, const B& b) {
    if (!parallel) {
        a();
        b();
        return;
    }
    std::exception_ptr failure;
    std::thread other([&] {
        try {
            b();
        } catch (...) {
            failure = std::current_exception();
        }
    });
    try {
        a();
    } catch (...) {
        other.join();
        throw;
    }
    other.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<uint32_t> point_order(const uint32_t* track, const int64_t* ts_ns, size_t n,
                                  size_t num_tracks, std::vector<int64_t>* first) {
    std::vector<uint32_t> order = group_order(track, n, num_tracks, first);
    const auto before = [ts_ns](uint32_t a, uint32_t b) { return ts_ns[a] < ts_ns[b]; };
    for (size_t t = 0; t < num_tracks; ++t) {
        const auto low = order.begin() + (*first)[t], high = order.begin() + (*first)[t + 1];
        if (!std::is_sorted(low, high, before)) std::stable_sort(low, high, before);
    }
    return order;
}

IndexedTrack TrackIndexer::index(uint32_t track_id, uint32_t* events, size_t n, uint32_t first,
                                 const std::vector<PointQueries>& queries,
                                 uint32_t* slice_of_event) const {
    sort_slices(in_.start_ns, in_.dur_ns, events, n);
    const Track track{in_, events, n};
    IndexedTrack indexed{};
    const std::vector<uint16_t> lanes = assign_lanes(track, &indexed.num_too_deep);
    std::vector<int64_t>& counts = indexed.lane_rows;
    for (uint16_t lane : lanes) {
        if (lane >= counts.size()) counts.resize(lane + size_t{1}, 0);
        ++counts[lane];
    }
    run_both(
        n >= kParallelRows,
        [&] {
            Sweep(track, lanes, lane_starts(counts, first), fd_, out_, python_kind_, op_kind_)
                .run(queries, slice_of_event);
        },
        [&] { copy_columns(track, lanes, counts, track_id, first, fd_, out_); });
    return indexed;
}

}  // namespace trnscope
