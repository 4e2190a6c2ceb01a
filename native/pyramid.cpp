#include "pyramid.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "mapped.h"

namespace trnscope {
namespace {

struct Lane {
    uint32_t id;
    int64_t first;
    int64_t count;
};

// What a level is summarised from: the slices themselves, or a finer level of the same lane.
struct Rows {
    size_t first;
    size_t count;
    bool raw;
};

int shift_of(int level) {
    return kPyramidBaseShift + kPyramidLevelShift * level;
}

// Buckets that the lane has at each level. Two neighbours are in different buckets of 2^s ns
// exactly if the highest bit in which their starts differ is s or above.
std::array<int64_t, kPyramidLevels> num_buckets(const Lane& lane, const int64_t* start) {
    std::array<int64_t, 65> highest{};
    for (int64_t row = lane.first + 1; row < lane.first + lane.count; ++row) {
        const auto differ = static_cast<uint64_t>(start[row] ^ start[row - 1]);
        ++highest[differ == 0 ? 0 : 64 - __builtin_clzll(differ)];  // 1 + index of the highest bit
    }
    std::array<int64_t, kPyramidLevels> buckets{};
    for (int level = 0; level < kPyramidLevels; ++level) {
        buckets[level] =
            1 + std::accumulate(highest.begin() + shift_of(level) + 1, highest.end(), int64_t{0});
    }
    return buckets;
}

// One row of the pyramid while it is made.
struct Bucket {
    int64_t start;
    int64_t end;
    uint32_t count;
    int64_t busy;
    uint32_t longest;
};

class LaneLevels {
  public:
    LaneLevels(const Lane& lane, const int64_t* start, const int64_t* dur, Pyramid* out)
        : lane_(lane), start_(start), dur_(dur), out_(out) {}

    // Appends one level, made from `from`; returns its rows in the pyramid.
    Rows add(int level, const Rows& from) {
        const size_t first = out_->level.size();
        if (from.raw) {
            merge(level, from, [this](size_t i) { return slice(i); });
        } else {
            merge(level, from, [this](size_t i) { return finer(i); });
        }
        return {first, out_->level.size() - first, false};
    }

  private:
    Bucket slice(size_t i) const {
        return {start_[i], start_[i] + dur_[i], 1, dur_[i], static_cast<uint32_t>(i)};
    }

    Bucket finer(size_t i) const {
        return {out_->start[i], out_->end[i], out_->count[i], out_->busy[i], out_->longest[i]};
    }

    template <typename Row>
    void merge(int level, const Rows& from, const Row& row) {
        const int shift = shift_of(level);
        Bucket open = row(from.first);
        for (size_t i = from.first + 1; i < from.first + from.count; ++i) {
            const Bucket next = row(i);
            if (next.start >> shift != open.start >> shift) {
                append(level, open);
                open = next;
                continue;
            }
            open.end = std::max(open.end, next.end);
            open.count += next.count;
            open.busy += next.busy;
            if (dur_[next.longest] > dur_[open.longest]) open.longest = next.longest;
        }
        append(level, open);
    }

    void append(int level, const Bucket& bucket) {
        out_->level.push_back(static_cast<uint8_t>(level));
        out_->lane.push_back(lane_.id);
        out_->start.push_back(bucket.start);
        out_->end.push_back(bucket.end);
        out_->count.push_back(bucket.count);
        out_->busy.push_back(bucket.busy);
        out_->longest.push_back(bucket.longest);
    }

    Lane lane_;
    const int64_t* start_;
    const int64_t* dur_;
    Pyramid* out_;
};

void add_lane(const Lane& lane, const int64_t* start, const int64_t* dur, Pyramid* out) {
    const auto buckets = num_buckets(lane, start);
    LaneLevels levels(lane, start, dur, out);
    Rows finest{static_cast<size_t>(lane.first), static_cast<size_t>(lane.count), true};
    for (int level = 0; level < kPyramidLevels; ++level) {
        if (buckets[level] > lane.count / 4) continue;
        finest = levels.add(level, finest);
        if (buckets[level] == 1) break;  // nothing coarser is needed
    }
}

}  // namespace

Pyramid build_pyramid(const int64_t* first, const int64_t* count, size_t num_lanes,
                      const int64_t* start, const int64_t* dur, bool release_mapped) {
    Pyramid pyramid;
    for (size_t i = 0; i < num_lanes; ++i) {
        if (count[i] < kPyramidMinRows) continue;
        add_lane({static_cast<uint32_t>(i), first[i], count[i]}, start, dur, &pyramid);
        if (!release_mapped) continue;
        release_pages(start + first[i], static_cast<size_t>(count[i]));
        release_pages(dur + first[i], static_cast<size_t>(count[i]));
    }
    return pyramid;
}

}  // namespace trnscope
