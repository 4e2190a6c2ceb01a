// Python names of what links slices: attributes by slice, flows, launches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "attribute_rows.h"
#include "bindings.h"
#include "flow_pairs.h"
#include "launch_links.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

bool all_below(const In<uint32_t>& ids, size_t limit) {
    uint32_t largest = 0;
    for (size_t i = 0; i < ids.size(); ++i) largest = std::max(largest, ids(i));
    return ids.size() == 0 || largest < limit;
}

template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> buffer_to_numpy(std::unique_ptr<T[]> values, size_t n) {
    T* data = values.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {n}, owner);
}

// (slice, value) by rising slice, from (event, value) rows.
template <typename T>
nb::tuple rows_by_slice_py(In<uint32_t> events, In<T> values, In<uint32_t> slice_of_event) {
    require(events.size() == values.size(), "events and values differ in length");
    AttributeRows<T> rows;
    const bool ok = without_gil([&] {
        return rows_by_slice(events.data(), values.data(), events.size(), slice_of_event.data(),
                             slice_of_event.size(), &rows);
    });
    require(ok, "slice or event out of range");
    return nb::make_tuple(buffer_to_numpy(std::move(rows.slice), rows.count),
                          buffer_to_numpy(std::move(rows.value), rows.count));
}

// (kind, slice_out, slice_in) of each link.
nb::tuple pair_flows_py(In<uint64_t> flow_id, In<uint32_t> kind, In<uint8_t> phase,
                        In<int64_t> ts_ns, In<uint8_t> found, In<uint32_t> slice) {
    for (size_t size : {kind.size(), phase.size(), ts_ns.size(), found.size(), slice.size()}) {
        require(size == flow_id.size(), "columns differ in length");
    }
    FlowPairs pairs = without_gil([&] {
        return pair_flows({flow_id.data(), kind.data(), phase.data(), ts_ns.data(), found.data(),
                           slice.data(), flow_id.size()});
    });
    return nb::make_tuple(to_numpy(std::move(pairs.kind)), to_numpy(std::move(pairs.slice_out)),
                          to_numpy(std::move(pairs.slice_in)));
}

// (device slice, has launch, launch slice, has op, op slice). Attributes are (slices, values).
nb::tuple find_launches_py(const In<uint8_t>& kind, const In<uint32_t>& parent,
                           const std::pair<In<uint32_t>, In<uint64_t>>& correlation,
                           const std::pair<In<uint32_t>, In<uint64_t>>& external_id,
                           const std::pair<In<uint32_t>, In<uint32_t>>& flows,
                           std::vector<uint8_t> device_kinds, uint8_t call_kind, uint8_t op_kind) {
    require(kind.size() == parent.size() && flows.first.size() == flows.second.size() &&
                correlation.first.size() == correlation.second.size() &&
                external_id.first.size() == external_id.second.size(),
            "columns differ in length");
    LaunchRows rows;
    bool ok = true;
    {
        nb::gil_scoped_release release;
        for (const auto* ids :
             {&parent, &correlation.first, &external_id.first, &flows.first, &flows.second}) {
            ok = ok && all_below(*ids, kind.size());
        }
        if (ok) {
            rows = find_launches(
                {kind.data(),
                 parent.data(),
                 kind.size(),
                 std::move(device_kinds),
                 call_kind,
                 op_kind,
                 {correlation.first.data(), correlation.second.data(), correlation.first.size()},
                 {external_id.first.data(), external_id.second.data(), external_id.first.size()},
                 flows.first.data(),
                 flows.second.data(),
                 flows.first.size()});
        }
    }
    require(ok, "slice id out of range");
    return nb::make_tuple(to_numpy(std::move(rows.device_slice)),
                          to_numpy(std::move(rows.has_launch)),
                          to_numpy(std::move(rows.launch_slice)), to_numpy(std::move(rows.has_op)),
                          to_numpy(std::move(rows.op_slice)));
}

}  // namespace

void bind_links(nb::module_& m) {
    m.def("rows_by_slice", &rows_by_slice_py<int64_t>);
    m.def("rows_by_slice", &rows_by_slice_py<uint64_t>);
    m.def("rows_by_slice", &rows_by_slice_py<uint32_t>);
    m.def("pair_flows", &pair_flows_py);
    m.def("find_launches", &find_launches_py);
}
