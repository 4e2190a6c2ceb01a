// Python names of the index builder: sorting, nesting, grouping, the zoom pyramid.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>

#include "bindings.h"
#include "nest.h"
#include "pyramid.h"
#include "sort.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

template <typename F>
auto without_gil(F&& f) {
    nb::gil_scoped_release release;
    return f();
}

void require(bool ok, const char* what) {
    if (!ok) throw nb::value_error(what);
}

nb::tuple group_order_py(In<uint32_t> keys, size_t num_groups) {
    for (size_t i = 0; i < keys.size(); ++i) require(keys(i) < num_groups, "key out of range");
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
            while (!wanted(at) && parent(at) != at) {
                at = parent(at);
                if (at >= parent.size()) return false;
            }
            found[i] = wanted(at) ? 1 : 0;
            slice[i] = wanted(at) ? at : 0;
        }
        return true;
    });
    require(ok, "slice id out of range");
    return nb::make_tuple(to_numpy(std::move(found)), to_numpy(std::move(slice)));
}

nb::tuple innermost_py(const TrackNesting& nesting, In<int64_t> ts, nb::object wanted_or_none) {
    const uint8_t* wanted = nullptr;
    In<uint8_t> wanted_array;
    if (!wanted_or_none.is_none()) {
        wanted_array = nb::cast<In<uint8_t>>(wanted_or_none);
        require(wanted_array.size() == nesting.size(), "wanted has the wrong length");
        wanted = wanted_array.data();
    }
    std::vector<uint8_t> found(ts.size(), 0);
    std::vector<uint32_t> position(ts.size(), 0);
    without_gil([&] {
        for (size_t i = 0; i < ts.size(); ++i) {
            found[i] = nesting.innermost(ts(i), wanted, &position[i]) ? 1 : 0;
        }
    });
    return nb::make_tuple(to_numpy(std::move(found)), to_numpy(std::move(position)));
}

nb::tuple pyramid_py(In<int64_t> first, In<int64_t> count, In<int64_t> start, In<int64_t> dur) {
    require(first.size() == count.size() && start.size() == dur.size(), "lengths differ");
    for (size_t i = 0; i < first.size(); ++i) {
        require(first(i) >= 0 && count(i) >= 0 &&
                    first(i) + count(i) <= static_cast<int64_t>(start.size()),
                "lane out of range");
    }
    Pyramid p = without_gil([&] {
        return build_pyramid(first.data(), count.data(), first.size(), start.data(), dur.data());
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

    nb::class_<TrackNesting>(m, "TrackNesting")
        .def(
            "__init__",
            [](TrackNesting* self, In<int64_t> start, In<int64_t> dur) {
                require(start.size() == dur.size(), "start and dur differ in length");
                nb::gil_scoped_release release;
                new (self) TrackNesting(start.data(), dur.data(), start.size());
            },
            nb::arg("start").noconvert(), nb::arg("dur").noconvert(), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>())
        .def("rows",
             [](const TrackNesting& n) { return to_numpy(without_gil([&] { return n.rows(); })); })
        .def("depth",
             [](const TrackNesting& n) { return to_numpy(without_gil([&] { return n.depth(); })); })
        .def(
            "parent",
            [](const TrackNesting& n) { return to_numpy(without_gil([&] { return n.parent(); })); })
        .def("self_ns",
             [](const TrackNesting& n) {
                 return to_numpy(without_gil([&] { return n.self_ns(); }));
             })
        .def("op_self_ns",
             [](const TrackNesting& n, In<uint8_t> is_python) {
                 require(is_python.size() == n.size(), "is_python has the wrong length");
                 return to_numpy(without_gil([&] { return n.op_self_ns(is_python.data()); }));
             })
        .def("innermost", &innermost_py, nb::arg("ts"), nb::arg("wanted").none());
    m.def("group_order", &group_order_py, nb::arg("keys"), nb::arg("num_groups"));
    m.def("group_sum", &group_sum_py, nb::arg("keys"), nb::arg("values"), nb::arg("num_groups"));
    m.def("group_range", &group_range_py, nb::arg("keys"), nb::arg("values"),
          nb::arg("num_groups"));
    m.def("argsort_u32", [](In<uint32_t> keys) {
        return to_numpy(without_gil([&] { return argsort_u32(keys.data(), keys.size()); }));
    });
    m.def("climb", &climb_py, nb::arg("parent"), nb::arg("wanted"), nb::arg("ids"));
    m.def("build_pyramid", &pyramid_py, nb::arg("first"), nb::arg("count"), nb::arg("start"),
          nb::arg("dur"));
}
