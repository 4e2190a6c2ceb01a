// Python names of the index builder: sorting, nesting, grouping, the zoom pyramid.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>

#include "bindings.h"
#include "pyramid.h"
#include "sort.h"
#include "track_index.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

void require_below(In<uint32_t> values, size_t limit, const char* what) {
    const bool ok = without_gil([&] {
        uint32_t largest = 0;
        for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, values(i));
        return values.size() == 0 || largest < limit;
    });
    require(ok, what);
}

nb::tuple group_order_py(In<uint32_t> keys, size_t num_groups) {
    require_below(keys, num_groups, "key out of range");
    std::vector<int64_t> first;
    auto order =
        without_gil([&] { return group_order(keys.data(), keys.size(), num_groups, &first); });
    return nb::make_tuple(to_numpy(std::move(order)), to_numpy(std::move(first)));
}

// Exact integer sums: (count, sum) per key.
nb::tuple group_sum_py(In<uint32_t> keys, In<int64_t> values, size_t num_groups) {
    require(keys.size() == values.size(), "keys and values differ in length");
    std::vector<int64_t> count(num_groups, 0), sum(num_groups, 0);
    const bool ok = without_gil([&] {
        for (size_t i = 0; i < keys.size(); ++i) {
            if (keys(i) >= num_groups) return false;
            ++count[keys(i)];
            sum[keys(i)] += values(i);
        }
        return true;
    });
    require(ok, "key out of range");
    return nb::make_tuple(to_numpy(std::move(count)), to_numpy(std::move(sum)));
}

// (min, max) per key; a key without values gets (int64 max, int64 min).
nb::tuple group_range_py(In<uint32_t> keys, In<int64_t> values, size_t num_groups) {
    require(keys.size() == values.size(), "keys and values differ in length");
    std::vector<int64_t> low(num_groups, std::numeric_limits<int64_t>::max());
    std::vector<int64_t> high(num_groups, std::numeric_limits<int64_t>::min());
    const bool ok = without_gil([&] {
        for (size_t i = 0; i < keys.size(); ++i) {
            if (keys(i) >= num_groups) return false;
            low[keys(i)] = std::min(low[keys(i)], values(i));
            high[keys(i)] = std::max(high[keys(i)], values(i));
        }
        return true;
    });
    require(ok, "key out of range");
    return nb::make_tuple(to_numpy(std::move(low)), to_numpy(std::move(high)));
}

// For each id the nearest slice at or above it (by parent) that is wanted: (found, slice).
nb::tuple climb_py(In<uint32_t> parent, In<uint8_t> wanted, In<uint32_t> ids) {
    require(parent.size() == wanted.size(), "parent and wanted differ in length");
    std::vector<uint8_t> found(ids.size(), 0);
    std::vector<uint32_t> slice(ids.size(), 0);
    const bool ok = without_gil([&] {
        for (size_t i = 0; i < ids.size(); ++i) {
            uint32_t at = ids(i);
            if (at >= parent.size()) return false;
            for (size_t steps = 0; !wanted(at) && parent(at) != at; ++steps) {
                at = parent(at);
                if (at >= parent.size() || steps > parent.size()) return false;
            }
            found[i] = wanted(at) ? 1 : 0;
            slice[i] = wanted(at) ? at : 0;
        }
        return true;
    });
    require(ok, "slice id out of range, or slices above each other");
    return nb::make_tuple(to_numpy(std::move(found)), to_numpy(std::move(slice)));
}

// Arrays that a TrackIndexer points into, kept alive together with it.
class PyTrackIndexer {
  public:
    PyTrackIndexer(In<int64_t> start, In<int64_t> dur, In<uint8_t> kind, In<uint16_t> category,
                   In<uint32_t> name, In<uint64_t> args_offset, In<uint32_t> args_length, int fd,
                   const std::vector<int64_t>& offsets, Out<uint32_t> slice_of_event,
                   uint8_t python_kind, uint8_t op_kind, bool release_mapped)
        : start_(start),
          dur_(dur),
          kind_(kind),
          category_(category),
          name_(name),
          args_offset_(args_offset),
          args_length_(args_length),
          slice_of_event_(slice_of_event),
          indexer_({start.data(), dur.data(), kind.data(), category.data(), name.data(),
                    args_offset.data(), args_length.data(), start.size(), release_mapped},
                   fd, to_offsets(offsets), python_kind, op_kind) {
        for (size_t size : {dur.size(), kind.size(), category.size(), name.size(),
                            args_offset.size(), args_length.size(), slice_of_event.size()}) {
            require(size == start.size(), "columns differ in length");
        }
    }

    // queries: (ts_ns, rows that point_order made, ops_only, found out, slice out) tuples.
    auto index(uint32_t track, Out<uint32_t> events, uint32_t first, nb::list queries) {
        require_below(In<uint32_t>(events), start_.size(), "event out of range");
        std::vector<QueryArrays> arrays;
        std::vector<PointQueries> points;
        for (nb::handle query : queries) {
            arrays.emplace_back(nb::cast<nb::tuple>(query));
            points.push_back(arrays.back().queries());
        }
        IndexedTrack indexed = without_gil([&] {
            return indexer_.index(track, events.data(), events.size(), first, points,
                                  slice_of_event_.data());
        });
        num_too_deep_ += indexed.num_too_deep;
        return to_numpy(std::move(indexed.lane_rows));
    }

    size_t num_too_deep() const { return num_too_deep_; }

  private:
    // Keeps the arrays of one query alive while they are read and written.
    struct QueryArrays {
        explicit QueryArrays(const nb::tuple& query)
            : ts(nb::cast<In<int64_t>>(query[0])),
              rows(nb::cast<In<uint32_t>>(query[1])),
              ops_only(nb::cast<bool>(query[2])),
              found(nb::cast<Out<uint8_t>>(query[3], false)),
              slice(nb::cast<Out<uint32_t>>(query[4], false)) {
            require(found.size() == ts.size() && slice.size() == ts.size(), "lengths differ");
            require_below(rows, ts.size(), "row of a query out of range");
        }

        PointQueries queries() const {
            return {ts.data(), rows.data(), rows.size(), ops_only, found.data(), slice.data()};
        }

        In<int64_t> ts;
        In<uint32_t> rows;
        bool ops_only;
        Out<uint8_t> found;
        Out<uint32_t> slice;
    };

    static OutputOffsets to_offsets(const std::vector<int64_t>& o) {
        require(o.size() == 12, "twelve column offsets are needed");
        return {o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], o[9], o[10], o[11]};
    }

    In<int64_t> start_, dur_;
    In<uint8_t> kind_;
    In<uint16_t> category_;
    In<uint32_t> name_;
    In<uint64_t> args_offset_;
    In<uint32_t> args_length_;
    Out<uint32_t> slice_of_event_;
    TrackIndexer indexer_;
    size_t num_too_deep_ = 0;
};

// Rows of points by track, then time, and where each track begins.
nb::tuple point_order_py(In<uint32_t> track, In<int64_t> ts_ns, size_t num_tracks) {
    require(track.size() == ts_ns.size(), "columns differ in length");
    require_below(track, num_tracks, "track out of range");
    std::vector<int64_t> first;
    auto order = without_gil(
        [&] { return point_order(track.data(), ts_ns.data(), track.size(), num_tracks, &first); });
    return nb::make_tuple(to_numpy(std::move(order)), to_numpy(std::move(first)));
}

nb::tuple pyramid_py(In<int64_t> first, In<int64_t> count, In<int64_t> start, In<int64_t> dur,
                     bool release_mapped) {
    require(first.size() == count.size() && start.size() == dur.size(), "lengths differ");
    const auto num_rows = static_cast<int64_t>(start.size());
    for (size_t i = 0; i < first.size(); ++i) {
        require(first(i) >= 0 && count(i) >= 0 && count(i) <= num_rows &&
                    first(i) <= num_rows - count(i),
                "lane out of range");
    }
    Pyramid p = without_gil([&] {
        return build_pyramid(first.data(), count.data(), first.size(), start.data(), dur.data(),
                             release_mapped);
    });
    return nb::make_tuple(to_numpy(std::move(p.level)), to_numpy(std::move(p.lane)),
                          to_numpy(std::move(p.start)), to_numpy(std::move(p.end)),
                          to_numpy(std::move(p.count)), to_numpy(std::move(p.busy)),
                          to_numpy(std::move(p.longest)));
}

}  // namespace

void bind_store(nb::module_& m) {
    m.attr("PYRAMID_BASE_SHIFT") = kPyramidBaseShift;
    m.attr("PYRAMID_LEVEL_SHIFT") = kPyramidLevelShift;
    m.attr("PYRAMID_LEVELS") = kPyramidLevels;

    nb::class_<PyTrackIndexer>(m, "TrackIndexer")
        .def(nb::init<In<int64_t>, In<int64_t>, In<uint8_t>, In<uint16_t>, In<uint32_t>,
                      In<uint64_t>, In<uint32_t>, int, const std::vector<int64_t>&, Out<uint32_t>,
                      uint8_t, uint8_t, bool>(),
             nb::arg("start_ns"), nb::arg("dur_ns"), nb::arg("kind"), nb::arg("category"),
             nb::arg("name"), nb::arg("args_offset"), nb::arg("args_length"), nb::arg("fd"),
             nb::arg("offsets"), nb::arg("slice_of_event").noconvert(), nb::arg("python_kind"),
             nb::arg("op_kind"), nb::arg("release_mapped") = false)
        .def("index", &PyTrackIndexer::index, nb::arg("track"), nb::arg("events").noconvert(),
             nb::arg("first"), nb::arg("queries"))
        .def_prop_ro("num_too_deep", &PyTrackIndexer::num_too_deep);
    m.def("point_order", &point_order_py, nb::arg("track"), nb::arg("ts_ns"),
          nb::arg("num_tracks"));
    m.def("group_order", &group_order_py, nb::arg("keys"), nb::arg("num_groups"));
    m.def("group_sum", &group_sum_py, nb::arg("keys"), nb::arg("values"), nb::arg("num_groups"));
    m.def("group_range", &group_range_py, nb::arg("keys"), nb::arg("values"),
          nb::arg("num_groups"));
    m.def("climb", &climb_py, nb::arg("parent"), nb::arg("wanted"), nb::arg("ids"));
    m.def("build_pyramid", &pyramid_py, nb::arg("first"), nb::arg("count"), nb::arg("start"),
          nb::arg("dur"), nb::arg("release_mapped") = false);
}
