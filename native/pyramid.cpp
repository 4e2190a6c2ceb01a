#include "pyramid.h"

#include <algorithm>

namespace trnscope {
namespace {

struct Lane {
    uint32_t id;
    int64_t first;
    int64_t count;
};

size_t num_buckets(const Lane& lane, const int64_t* start, int shift, size_t limit) {
    size_t buckets = 0;
    int64_t last = 0;
    for (int64_t row = lane.first; row < lane.first + lane.count && buckets <= limit; ++row) {
        const int64_t bucket = start[row] >> shift;
        if (buckets == 0 || bucket != last) ++buckets;
        last = bucket;
    }
    return buckets;
}

void add_level(const Lane& lane, int level, int shift, const int64_t* start, const int64_t* dur,
               Pyramid* out) {
    int64_t open_bucket = 0;
    bool open = false;
    for (int64_t row = lane.first; row < lane.first + lane.count; ++row) {
        const int64_t bucket = start[row] >> shift, end = start[row] + dur[row];
        if (!open || bucket != open_bucket) {
            out->level.push_back(static_cast<uint8_t>(level));
            out->lane.push_back(lane.id);
            out->start.push_back(start[row]);
            out->end.push_back(end);
            out->count.push_back(0);
            out->busy.push_back(0);
            out->longest.push_back(static_cast<uint32_t>(row));
            open = true;
            open_bucket = bucket;
        }
        out->end.back() = std::max(out->end.back(), end);
        ++out->count.back();
        out->busy.back() += dur[row];
        if (dur[row] > dur[out->longest.back()]) out->longest.back() = static_cast<uint32_t>(row);
    }
}

}  // namespace

Pyramid build_pyramid(const int64_t* first, const int64_t* count, size_t num_lanes,
                      const int64_t* start, const int64_t* dur) {
    Pyramid pyramid;
    std::vector<Lane> lanes;
    for (size_t i = 0; i < num_lanes; ++i) {
        if (count[i] >= kPyramidMinRows)
            lanes.push_back({static_cast<uint32_t>(i), first[i], count[i]});
    }
    // A lane whose last stored level has a single bucket needs nothing coarser.
    std::vector<uint8_t> done(lanes.size(), 0);
    for (int level = 0; level < kPyramidLevels; ++level) {
        const int shift = kPyramidBaseShift + kPyramidLevelShift * level;
        for (size_t i = 0; i < lanes.size(); ++i) {
            if (done[i]) continue;
            const size_t limit = static_cast<size_t>(lanes[i].count / 4);
            const size_t buckets = num_buckets(lanes[i], start, shift, limit);
            if (buckets > limit) continue;
            add_level(lanes[i], level, shift, start, dur, &pyramid);
            done[i] = buckets == 1;
        }
    }
    return pyramid;
}

}  // namespace trnscope
