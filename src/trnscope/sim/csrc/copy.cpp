#include "copy.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include "convert.h"
#include "describe.h"
#include "device.h"
#include "host_allocator.h"
#include "launch.h"
#include "op_info.h"
#include "run_and_see.h"
#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

std::int64_t bytes_of(const at::Tensor& tensor) {
    return static_cast<std::int64_t>(tensor.nbytes());
}

void copy_twins(const at::Tensor& from, const at::Tensor& to) {
    Worker::instance().submit("aten::copy_", [from, to] {
        materialize_twin(from);
        materialize_twin(to);
        to.copy_(from);
    });
}

void host_to_device(const at::Tensor& from, const at::Tensor& to) {
    const std::int64_t real_ns = real_now_ns();
    launch(describe_copy(CopyDirection::kHostToDevice, bytes_of(from)), to.device().index(),
           real_ns);
    if (settings().numerics) copy_twins(snapshot(from), to_twin(to));
}

void device_to_host(const at::Tensor& from, const at::Tensor& to, bool is_async) {
    const std::int32_t core = from.device().index();
    launch(describe_copy(CopyDirection::kDeviceToHost, bytes_of(from)), core, real_now_ns());
    copy_twins(to_twin(from), to);
    const bool is_awaited = !is_async || !is_pinned(to.storage().data());
    if (is_awaited && !is_in_graph()) {
        Timeline::instance().wait_stream(core, current_stream(core), WaitKind::kRead,
                                         waiter_here());
    }
    // Also where no virtual time passes: nobody then reads memory that is not yet written.
    Worker::instance().drain();
}

// A plain copy moves bytes; one that converts or gathers is an op like another.
Execution& describe_device_copy(const at::Tensor& from, const at::Tensor& to) {
    const bool is_plain =
        from.scalar_type() == to.scalar_type() && from.is_contiguous() && to.is_contiguous();
    if (is_plain) return describe_copy(CopyDirection::kDeviceToDevice, bytes_of(to));
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_copy_from", "");
    const std::vector<c10::IValue> values{from, to, false};
    return describe_seen(op_info(op), values, {to});
}

// The target's core waits for the source's; a copy on one core is one more execution of it.
void device_to_device(const at::Tensor& from, const at::Tensor& to) {
    const std::int32_t source = from.device().index();
    const std::int32_t target = to.device().index();
    const std::int64_t real_ns = real_now_ns();
    if (source != target && !is_in_graph()) {
        Timeline& timeline = Timeline::instance();
        timeline.block_stream(target, current_stream(target),
                              timeline.record_event(source, current_stream(source)));
    }
    if (!is_in_graph()) launch(describe_device_copy(from, to), target, real_ns);
    if (settings().numerics) copy_twins(to_twin(from), to_twin(to));
}

}  // namespace

void copy_tensor(const at::Tensor& from, const at::Tensor& to, bool is_async) {
    if (to.is_same(from) || to.numel() == 0) return;
    const bool from_device = from.device().is_privateuseone();
    const bool to_device = to.device().is_privateuseone();
    if (from_device && to_device) return device_to_device(from, to);
    if (to_device) return host_to_device(from, to);
    device_to_host(from, to, is_async);
}

at::Scalar read_value(const at::Tensor& tensor) {
    const std::int32_t core = tensor.device().index();
    launch(describe_copy(CopyDirection::kDeviceToHost, bytes_of(tensor)), core, real_now_ns());
    if (!is_in_graph()) {
        Timeline::instance().wait_stream(core, current_stream(core), WaitKind::kRead,
                                         waiter_here());
    }
    const at::Tensor twin = to_twin(tensor);
    at::Scalar value;
    Worker::instance().run("aten::_local_scalar_dense", [&] {
        materialize_twin(twin);
        value = at::_local_scalar_dense(twin);
    });
    return value;
}

}  // namespace trnscope::sim
