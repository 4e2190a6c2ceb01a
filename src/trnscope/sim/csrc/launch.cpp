#include "launch.h"

#include <ATen/record_function.h>

#include <algorithm>

#include "device.h"

namespace trnscope::sim {
namespace {

thread_local int graphs_here = 0;

LaunchRequest request_of(Execution& execution, std::int32_t core, std::int64_t stream,
                         std::int64_t host_real_ns) {
    LaunchRequest request;
    request.kind = execution.kind;
    request.core = core;
    request.stream = stream;
    request.thread = thread_id();
    request.signature = execution.signature;
    request.bytes = execution.bytes;
    request.host_real_ns = host_real_ns;
    request.cost = execution.cost;
    if (execution.is_compiled.exchange(true)) request.cost.compile_ns = 0;
    return request;
}

LaunchRequest copy_request(LaunchRequest request, LaunchKind kind, std::int64_t bytes,
                           const LaunchCost& cost) {
    request.kind = kind;
    request.bytes = bytes;
    request.cost = cost;
    return request;
}

// An op without an implementation on the device: inputs to the host, its kernel, results back.
void fall_back(Execution& execution, const LaunchRequest& request) {
    Timeline& timeline = Timeline::instance();
    const auto copy = [&](LaunchKind kind, std::int64_t bytes, const LaunchCost& cost) {
        if (bytes > 0) timeline.launch(copy_request(request, kind, bytes, {0, cost.device_ns, 0}));
        timeline.wait_stream(request.core, request.stream, WaitKind::kRead, waiter_here());
    };
    copy(LaunchKind::kCopyDeviceToHost, execution.input_bytes, execution.copy_in);
    // The model's time of the host holds the copies and both waits, which are rows of their own.
    const std::int64_t apart_ns =
        execution.copy_in.device_ns + execution.copy_out.device_ns + 2 * timeline.costs().sync_ns;
    timeline.advance_host(std::max<std::int64_t>(0, execution.cost.host_ns - apart_ns));
    copy(LaunchKind::kCopyHostToDevice, execution.output_bytes, execution.copy_out);
}

}  // namespace

void launch_on(Execution& execution, std::int32_t core, std::int64_t stream,
               std::int64_t host_real_ns) {
    const LaunchRequest request = request_of(execution, core, stream, host_real_ns);
    ++execution.num_launches;
    if (execution.is_on_cpu) {
        fall_back(execution, request);
    } else {
        Timeline::instance().launch(request);
    }
}

void launch(Execution& execution, std::int32_t core, std::int64_t host_real_ns) {
    if (graphs_here > 0) return;
    launch_on(execution, core, current_stream(core), host_real_ns);
}

void begin_graph() {
    ++graphs_here;
    at::enableRecordFunction(false);  // a profiler sees the graph, not the ops in it
}

void end_graph(Execution* execution, std::int32_t core) {
    if (--graphs_here == 0) at::enableRecordFunction(true);
    if (execution != nullptr) launch(*execution, core, real_now_ns());
}

bool is_in_graph() {
    return graphs_here > 0;
}

void host_only() {
    if (graphs_here == 0) Timeline::instance().host_only();
}

}  // namespace trnscope::sim
