// Python names of what the importers need in native code.
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "bindings.h"
#include "place_rows.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

template <typename T>
nb::object column(std::vector<T>&& values) {
    return nb::cast(to_numpy(std::move(values)));
}

// The placed rows as numpy arrays.
struct PyPlacedRows {
    explicit PyPlacedRows(PlacedRows&& rows)
        : track(column(std::move(rows.track))),
          kind(column(std::move(rows.kind))),
          category(column(std::move(rows.category))),
          name(column(std::move(rows.name))),
          start_ns(column(std::move(rows.start_ns))),
          dur_ns(column(std::move(rows.dur_ns))),
          args_offset(column(std::move(rows.args_offset))),
          args_length(column(std::move(rows.args_length))),
          place(column(std::move(rows.place))),
          rest(column(std::move(rows.rest))),
          new_categories(column(std::move(rows.new_categories))),
          new_seen(column(std::move(rows.new_seen))),
          new_names(column(std::move(rows.new_names))),
          new_tracks(column(std::move(rows.new_tracks))) {}

    nb::object track, kind, category, name, start_ns, dur_ns, args_offset, args_length;
    nb::object place, rest, new_categories, new_seen, new_names, new_tracks;
};

PyPlacedRows place_rows_py(In<uint8_t> phase, In<uint8_t> flags, In<uint32_t> category,
                           In<uint32_t> name, In<uint32_t> track, In<int64_t> ts_ns,
                           In<int64_t> dur_ns, In<uint64_t> args_offset, In<uint32_t> args_length,
                           In<uint16_t> number, In<uint8_t> placing, In<uint8_t> kind,
                           In<uint8_t> seen_kind, In<uint8_t> name_kind, In<uint32_t> host_track,
                           int64_t start_limit_ns, int64_t dur_limit_ns) {
    for (size_t size : {flags.size(), category.size(), name.size(), track.size(), ts_ns.size(),
                        dur_ns.size(), args_offset.size(), args_length.size()}) {
        require(size == phase.size(), "columns differ in length");
    }
    require(placing.size() == kind.size(), "placing and kind differ in length");
    const EventRows rows{phase.data(),       flags.data(), category.data(), name.data(),
                         track.data(),       ts_ns.data(), dur_ns.data(),   args_offset.data(),
                         args_length.data(), phase.size()};
    const PlaceTables tables{
        number.data(),     number.size(),    placing.data(),   kind.data(),      kind.size(),
        seen_kind.data(),  seen_kind.size(), name_kind.data(), name_kind.size(), host_track.data(),
        host_track.size(), start_limit_ns,   dur_limit_ns};
    return PyPlacedRows(without_gil([&] { return place_rows(rows, tables); }));
}

template <typename T>
nb::tuple lift_py(In<uint32_t> place, In<uint32_t> rows, In<T> values, uint32_t first_event) {
    require(rows.size() == values.size(), "rows and values differ in length");
    for (size_t i = 0; i < rows.size(); ++i) require(rows(i) < place.size(), "row out of range");
    std::vector<uint32_t> events;
    std::vector<T> kept;
    lift(place.data(), rows.data(), values.data(), rows.size(), first_event, &events, &kept);
    return nb::make_tuple(to_numpy(std::move(events)), to_numpy(std::move(kept)));
}

// While a trace is read, the same few megabytes are freed and taken again thousands of times.
// Kept in the process they cost no page faults. This lasts as long as the process.
void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

// Gives unused memory back to the system.
void release_freed_memory() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

}  // namespace

void bind_ingest(nb::module_& m) {
    m.def("keep_freed_memory", &keep_freed_memory);
    m.def("release_freed_memory", &release_freed_memory);
    nb::class_<PyPlacedRows>(m, "PlacedRows")
        .def_ro("track", &PyPlacedRows::track)
        .def_ro("kind", &PyPlacedRows::kind)
        .def_ro("category", &PyPlacedRows::category)
        .def_ro("name", &PyPlacedRows::name)
        .def_ro("start_ns", &PyPlacedRows::start_ns)
        .def_ro("dur_ns", &PyPlacedRows::dur_ns)
        .def_ro("args_offset", &PyPlacedRows::args_offset)
        .def_ro("args_length", &PyPlacedRows::args_length)
        .def_ro("place", &PyPlacedRows::place)
        .def_ro("rest", &PyPlacedRows::rest)
        .def_ro("new_categories", &PyPlacedRows::new_categories)
        .def_ro("new_seen", &PyPlacedRows::new_seen)
        .def_ro("new_names", &PyPlacedRows::new_names)
        .def_ro("new_tracks", &PyPlacedRows::new_tracks);
    m.def("place_rows", &place_rows_py);
    m.def("lift", &lift_py<uint32_t>, nb::arg("place"), nb::arg("rows"),
          nb::arg("values").noconvert(), nb::arg("first_event"));
    m.def("lift", &lift_py<int64_t>, nb::arg("place"), nb::arg("rows"),
          nb::arg("values").noconvert(), nb::arg("first_event"));
    m.def("lift", &lift_py<uint64_t>, nb::arg("place"), nb::arg("rows"),
          nb::arg("values").noconvert(), nb::arg("first_event"));
}
