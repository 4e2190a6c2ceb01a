#include "profiler_bindings.h"

#include <pybind11/stl.h>

#include "observer.h"
#include "profiler.h"

namespace py = pybind11;

namespace trnscope::sim {
namespace {

// The columns of trnscope/sim/virtual_trace/observed.py, in its order.
py::tuple to_tuple(const ObservedRange& range) {
    return py::make_tuple(range.id, range.scope, range.name, range.thread, range.start_ns,
                          range.end_ns, range.sequence, range.forward_thread, range.inputs,
                          range.parent);
}

py::tuple to_tuple(const ObservedLaunch& launch) {
    const LaunchRecord& record = launch.record;
    return py::make_tuple(record.sequence_id, record.correlation_id, static_cast<int>(record.kind),
                          record.signature, record.core, record.stream, launch.thread,
                          record.host_start_ns, record.host_end_ns, record.device_start_ns,
                          record.device_end_ns, launch.range, record.bytes, record.compile_ns,
                          record.switch_ns, launch.collective.number, launch.collective.sequence);
}

py::tuple to_tuple(const ObservedWait& wait) {
    return py::make_tuple(static_cast<int>(wait.record.kind), wait.thread,
                          wait.record.host_start_ns, wait.record.host_end_ns, wait.range,
                          wait.record.core, wait.record.stream);
}

py::tuple to_tuple(const ObservedMemory& memory) {
    return py::make_tuple(memory.time_ns, memory.thread, memory.core, memory.address, memory.bytes,
                          memory.total);
}

py::tuple to_tuple(const ObservedInputs& inputs) {
    return py::make_tuple(inputs.shapes, inputs.types, inputs.values);
}

py::tuple to_tuple(const CollectiveInfo& info) {
    return py::make_tuple(info.call, info.in_elements, info.out_elements, info.in_splits,
                          info.out_splits, info.dtype, info.group_name, info.group_description,
                          info.ranks, info.rank, info.source, info.destination);
}

template <typename Row>
py::list to_list(const std::vector<Row>& rows) {
    py::list list(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) list[i] = to_tuple(rows[i]);
    return list;
}

py::dict to_dict(const Observed& observed) {
    py::dict result;
    result["start_ns"] = observed.start_ns;
    result["end_ns"] = observed.end_ns;
    result["ranges"] = to_list(observed.ranges);
    result["launches"] = to_list(observed.launches);
    result["waits"] = to_list(observed.waits);
    result["memory"] = to_list(observed.memory);
    result["inputs"] = to_list(observed.inputs);
    result["names"] = observed.names;
    result["with_python"] = observed.with_python;
    result["collectives"] = to_list(observed.collectives);
    return result;
}

}  // namespace

void bind_profilers(py::module_& module) {
    module.def(
        "observer_begin",
        [](bool with_inputs, bool with_python) {
            return Observer::instance().begin(with_inputs, with_python);
        },
        py::arg("with_inputs"), py::arg("with_python") = false);
    module.def("observer_end", [](std::uint64_t recording) {
        return to_dict(Observer::instance().end(recording));
    });
    module.def("profiler_has_last", &has_last_observed);
    module.def("profiler_take_last", [] { return to_dict(take_last_observed()); });
    module.def("profiler_num_dropped", &num_dropped_by_profiler);
    module.def("set_profiler_header", &set_profiler_header);
}

}  // namespace trnscope::sim
