// The Python module of the device.

#include <pthread.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

#include "torch_headers.h"
// after torch's
#include "block.h"
#include "convert.h"
#include "describe.h"
#include "device.h"
#include "generator.h"
#include "hbm.h"
#include "launch.h"
#include "log_columns.h"
#include "process_group.h"
#include "profiler.h"
#include "profiler_bindings.h"
#include "registration.h"
#include "sends.h"
#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

namespace py = pybind11;

void configure(std::int32_t num_cores, std::int64_t capacity_bytes, const RuntimeCosts& costs,
               bool numerics, bool blocking) {
    settings().numerics = numerics;
    settings().blocking = blocking;
    Timeline::instance().configure(num_cores, costs);
    Hbm::instance().configure(num_cores, capacity_bytes);
    Executions::instance().restart();
}

py::dict memory_stats(std::int32_t core) {
    const MemoryStats stats = Hbm::instance().stats(core);
    py::dict result;
    result["current"] = stats.current;
    result["peak"] = stats.peak;
    result["allocated"] = stats.allocated;
    result["freed"] = stats.freed;
    result["num_allocations"] = stats.num_allocations;
    result["num_frees"] = stats.num_frees;
    result["num_ooms"] = stats.num_ooms;
    return result;
}

// (signature, name, kind, launches, is_on_cpu) of everything that was launched.
py::list executions() {
    py::list result;
    Executions& all = Executions::instance();
    for (std::uint32_t signature = 0; signature < all.size(); ++signature) {
        const Execution& one = all.at(signature);
        result.append(py::make_tuple(signature, one.name, static_cast<int>(one.kind),
                                     one.num_launches.load(), one.is_on_cpu));
    }
    return result;
}

std::uint32_t add_execution(const std::string& name, int kind, std::int64_t host_ns,
                            std::int64_t device_ns, std::int64_t compile_ns, std::int64_t bytes) {
    Execution& execution = Executions::instance().add(name, static_cast<LaunchKind>(kind),
                                                      {host_ns, device_ns, compile_ns});
    execution.bytes = bytes;
    return execution.signature;
}

void end_graph_with(std::optional<std::uint32_t> signature, std::int32_t core) {
    end_graph(signature.has_value() ? &Executions::instance().at(*signature) : nullptr, core);
}

// Starts after what the current stream holds so far; the time at which it ends.
std::int64_t launch_after_current(std::uint32_t signature, std::int32_t core, std::int64_t stream) {
    Timeline& timeline = Timeline::instance();
    timeline.block_stream(core, stream, timeline.record_event(core, current_stream(core)));
    launch_on(Executions::instance().at(signature), core, stream, real_now_ns());
    return timeline.record_event(core, stream);
}

void block_current(std::int32_t core, std::int64_t time_ns) {
    Timeline::instance().block_stream(core, current_stream(core), time_ns);
}

// The values as a CPU tensor that shares them; waits for the numbers.
at::Tensor host_view(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.device().is_privateuseone(), "host_view takes a tensor of the device");
    Worker::instance().drain();
    at::Tensor twin = to_twin(tensor);
    materialize_twin(twin);
    return twin;
}

py::object default_generator_object(std::int32_t core) {
    return py::reinterpret_steal<py::object>(
        THPGenerator_initDefaultGenerator(default_generator(core)));
}

void mark_fork() {
    settings().in_bad_fork = true;
}

void add_clock(py::module_& m) {
    py::class_<RuntimeCosts>(m, "RuntimeCosts")
        .def(py::init<>())
        .def_readwrite("launch_latency_ns", &RuntimeCosts::launch_latency_ns)
        .def_readwrite("switch_ns", &RuntimeCosts::switch_ns)
        .def_readwrite("host_only_ns", &RuntimeCosts::host_only_ns)
        .def_readwrite("sync_ns", &RuntimeCosts::sync_ns)
        .def_readwrite("query_ns", &RuntimeCosts::query_ns)
        .def_readwrite("queue_depth", &RuntimeCosts::queue_depth);
    m.def("now_ns", [] { return Timeline::instance().now_ns(); });
    m.def("advance_host", [](std::int64_t ns) { Timeline::instance().advance_host(ns); });
    m.def("num_launches", [] { return Timeline::instance().num_launches(); });
    m.def("num_dropped", [] { return Timeline::instance().num_dropped(); });
    m.def("set_log_capacity",
          [](std::size_t capacity) { Timeline::instance().set_log_capacity(capacity); });
    m.def("clear_log", [] { Timeline::instance().clear_log(); });
    m.def("launch_columns", &launch_columns);
    m.def("wait_columns", &wait_columns);
}

void add_device(py::module_& m) {
    m.def("configure", &configure);
    m.def("register_ops", &register_ops);
    m.def("set_cost_source", [](const py::object& source) {
        set_cost_source(source.is_none() ? nullptr : source.ptr());
    });
    m.def("set_numerics", [](bool numerics) { settings().numerics = numerics; });
    m.def("numerics", [] { return settings().numerics; });
    m.def("num_cores", &num_cores);
    m.def("current_core", &current_core);
    m.def("set_current_core", &set_current_core);
    m.def("synchronize", &synchronize_core);
    m.def("is_in_bad_fork", [] { return settings().in_bad_fork; });
    m.def("stop_worker", [] {
        Worker::instance().stop();
        py::gil_scoped_release other_threads_run;
        Sends::instance().wait();
    });
    m.def("capacity_bytes", [] { return Hbm::instance().capacity_bytes(); });
    m.def("set_capacity",
          [](std::int64_t bytes) { Hbm::instance().configure(num_cores(), bytes); });
    m.def("memory_stats", &memory_stats);
    m.def("reset_peak", [](std::int32_t core) { Hbm::instance().reset_peak(core); });
    m.def("reset_accumulated", [](std::int32_t core) { Hbm::instance().reset_accumulated(core); });
    m.def("default_generator", &default_generator_object);
    m.def("host_view", &host_view);
}

void add_launches(py::module_& m) {
    m.def("executions", &executions);
    m.def("add_execution", &add_execution);
    m.def("begin_graph", &begin_graph);
    m.def("end_graph", &end_graph_with);
    m.def("launch_after_current", &launch_after_current);
    m.def("block_current", &block_current);
    m.def("new_stream", &new_stream);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    add_clock(m);
    add_device(m);
    add_launches(m);
    m.def("bind_process_group", [m]() mutable { bind_process_group(m); });
    bind_profilers(m);
    connect_profilers(
        [](std::uint32_t signature) { return Executions::instance().at(signature).name; });
    pthread_atfork(nullptr, nullptr, &mark_fork);
}

}  // namespace trnscope::sim
