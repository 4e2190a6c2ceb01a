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

class LaneLevels {
  public:
    LaneLevels(const Lane& lane, const int64_t* start, const int64_t* dur, Pyramid* out)
        : lane_(lane), start_(start), dur_(dur), out_(out) {}

    // Appends one level, made from `from`; returns its rows in the pyramid.
    Rows add(int level, const Rows& from) {
        const size_t first = out_->level.size();
        int64_t open_bucket = 0;
        for (size_t i = from.first; i < from.first + from.count; ++i) {
            const int64_t bucket = start_at(i, from.raw) >> shift_of(level);
            if (out_->level.size() == first || bucket != open_bucket) open(level, i, from.raw);
            open_bucket = bucket;
            merge(i, from.raw);
        }
        return {first, out_->level.size() - first, false};
    }

  private:
    int64_t start_at(size_t i, bool raw) const { return raw ? start_[i] : out_->start[i]; }

    void open(int level, size_t i, bool raw) {
        out_->level.push_back(static_cast<uint8_t>(level));
        out_->lane.push_back(lane_.id);
        out_->start.push_back(start_at(i, raw));
        out_->end.push_back(start_at(i, raw));
        out_->count.push_back(0);
        out_->busy.push_back(0);
        out_->longest.push_back(raw ? static_cast<uint32_t>(i) : out_->longest[i]);
    }

    void merge(size_t i, bool raw) {
        const int64_t end = raw ? start_[i] + dur_[i] : out_->end[i];
        const uint32_t longest = raw ? static_cast<uint32_t>(i) : out_->longest[i];
        out_->end.back() = std::max(out_->end.back(), end);
        out_->count.back() += raw ? 1 : out_->count[i];
        out_->busy.back() += raw ? dur_[i] : out_->busy[i];
        if (dur_[longest] > dur_[out_->longest.back()]) out_->longest.back() = longest;
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
                      const int64_t* start, const int64_t* dur) {
    Pyramid pyramid;
    for (size_t i = 0; i < num_lanes; ++i) {
        if (count[i] < kPyramidMinRows) continue;
        add_lane({static_cast<uint32_t>(i), first[i], count[i]}, start, dur, &pyramid);
        release_pages(start + first[i], static_cast<size_t>(count[i]));
        release_pages(dur + first[i], static_cast<size_t>(count[i]));
    }
    return pyramid;
}

}  // namespace trnscope
