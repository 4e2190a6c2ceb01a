#include "execute.h"

#include <mutex>

#include "allocator.h"
#include "convert.h"
#include "describe.h"
#include "device.h"
#include "entry.h"
#include "generator.h"
#include "host_call.h"
#include "launch.h"
#include "op_info.h"
#include "run_and_see.h"
#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

using Stack = torch::jit::Stack;
using Values = c10::ArrayRef<c10::IValue>;

std::mutex& entries_mutex() {
    static auto* mutex = new std::mutex();
    return *mutex;
}

Entry* find_entry(OpInfo& info, const Fingerprint& key) {
    std::lock_guard lock(entries_mutex());
    const auto found = info.entries.find(key);
    return found == info.entries.end() ? nullptr : found->second.get();
}

// The plan is made without the lock: a meta kernel may be Python and wait for the interpreter.
Entry& get_entry(OpInfo& info, Values values, const Arguments& arguments) {
    const Fingerprint key = fingerprint(info, values, arguments);
    if (Entry* entry = find_entry(info, key)) return *entry;
    auto entry = std::make_unique<Entry>();
    entry->plan = make_plan(info, values, arguments);
    std::lock_guard lock(entries_mutex());
    return *info.entries.try_emplace(key, std::move(entry)).first->second;
}

at::Tensor make_view(const OutputPlan& plan, const at::Tensor& base) {
    const c10::TensorImpl& impl = *base.unsafeGetTensorImpl();
    at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
        c10::TensorImpl::VIEW, c10::Storage(impl.storage()), impl.key_set(), plan.dtype);
    view.unsafeGetTensorImpl()->set_sizes_and_strides(plan.sizes, plan.strides,
                                                      impl.storage_offset() + plan.offset);
    return view;
}

c10::IValue make_output(const OutputPlan& plan, const Arguments& arguments) {
    if (plan.kind == OutputPlan::kConstant) return plan.constant;
    if (plan.kind == OutputPlan::kArgument) return *arguments.tensors[plan.tensor].tensor;
    at::Tensor tensor = plan.kind == OutputPlan::kView
                            ? make_view(plan, *arguments.tensors[plan.tensor].tensor)
                            : new_tensor(arguments.core, plan.sizes, plan.strides, plan.dtype);
    if (plan.is_conj != tensor.is_conj()) tensor._set_conj(plan.is_conj);
    if (plan.is_neg != tensor.is_neg()) tensor._set_neg(plan.is_neg);
    return tensor;
}

std::vector<c10::IValue> make_outputs(const Plan& plan, const Arguments& arguments) {
    std::vector<c10::IValue> outputs;
    outputs.reserve(plan.outputs.size());
    for (const OutputPlan& output : plan.outputs) outputs.push_back(make_output(output, arguments));
    return outputs;
}

void reshape_arguments(const Plan& plan, const Arguments& arguments) {
    for (const ReshapePlan& reshape : plan.reshapes) {
        const at::Tensor& tensor = *arguments.tensors[reshape.tensor].tensor;
        c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
        impl.set_sizes_and_strides(reshape.sizes, reshape.strides);
        grow(*impl.unsafe_storage().unsafeGetStorageImpl(),
             bytes_of(reshape.sizes, reshape.strides, impl.storage_offset(),
                      tensor.dtype().itemsize()));
    }
}

std::vector<at::Tensor> results_of(const OpInfo& info, Values values,
                                   const std::vector<c10::IValue>& outputs) {
    std::vector<at::Tensor> results;
    const auto keep = [&](const at::Tensor& tensor) { results.push_back(tensor); };
    for (const c10::IValue& output : outputs) each_tensor(output, keep);
    if (!results.empty()) return results;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (info.arguments[i].is_written) each_tensor(values[i], keep);
    }
    return results;
}

void return_outputs(Stack& stack, std::size_t num_arguments, const Plan& plan,
                    std::vector<c10::IValue> outputs) {
    stack.resize(stack.size() - num_arguments);
    std::size_t next = 0;
    for (const ReturnPlan& planned : plan.returns) {
        if (!planned.is_list) {
            stack.push_back(std::move(outputs[next++]));
            continue;
        }
        c10::List<at::Tensor> list;
        for (std::int32_t i = 0; i < planned.num_outputs; ++i) {
            list.push_back(outputs[next++].toTensor());
        }
        stack.emplace_back(std::move(list));
    }
}

// What the worker needs to make the numbers of one call.
struct Job {
    OpInfo* info;
    const Plan* plan;
    HostCall call;
    std::vector<at::Tensor> fresh;  // twins of the fresh results, in order

    void operator()() {
        run_host_call(*info, call);
        std::size_t next_fresh = 0;
        std::size_t next_output = 0;
        for (const c10::IValue& value : call.stack) {
            each_output(value, [&](const c10::IValue& output) {
                const OutputPlan& planned = plan->outputs.at(next_output++);
                if (planned.kind == OutputPlan::kFresh)
                    settle(fresh[next_fresh++], output.toTensor());
            });
        }
    }

    template <typename Visit>
    static void each_output(const c10::IValue& value, Visit&& visit) {
        if (!value.isTensorList()) return visit(value);
        for (const c10::IValue& item : value.toListRef()) visit(item);
    }
};

void enqueue(OpInfo& info, const Plan& plan, HostCall call,
             const std::vector<c10::IValue>& outputs) {
    Job job{&info, &plan, std::move(call), {}};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (plan.outputs[i].kind == OutputPlan::kFresh) {
            job.fresh.push_back(to_twin(outputs[i].toTensor()));
        }
    }
    Worker::instance().submit(info.name.c_str(), std::move(job));
}

// Index tensors of the host are copied to the device first.
void launch_input_copies(const OpInfo& info, const Arguments& arguments, std::int64_t real_ns) {
    if (!info.may_mix_devices) return;
    for (const TensorArgument& argument : arguments.tensors) {
        const at::Tensor& tensor = *argument.tensor;
        if (argument.is_on_device() || tensor.dim() == 0) continue;
        launch(
            describe_copy(CopyDirection::kHostToDevice, static_cast<std::int64_t>(tensor.nbytes())),
            arguments.core, real_ns);
    }
}

void run_view(const Plan& plan, const Arguments& arguments, std::size_t num_arguments,
              Stack& stack) {
    std::vector<c10::IValue> outputs = make_outputs(plan, arguments);
    reshape_arguments(plan, arguments);
    host_only();
    return_outputs(stack, num_arguments, plan, std::move(outputs));
}

void run_planned(OpInfo& info, Entry& entry, const Arguments& arguments, Values values,
                 Stack& stack, std::int64_t real_ns) {
    const Plan& plan = entry.plan;
    const std::size_t num_arguments = values.size();
    std::vector<c10::IValue> outputs = make_outputs(plan, arguments);
    if (!is_in_graph()) {
        if (entry.execution == nullptr) {
            entry.execution = &describe_op(info, values, results_of(info, values, outputs));
        }
        launch_input_copies(info, arguments, real_ns);
        launch(*entry.execution, arguments.core, real_ns);
    }
    if (settings().numerics) {
        enqueue(info, plan, make_host_call(info, values, arguments), outputs);
    }
    reshape_arguments(plan, arguments);
    return_outputs(stack, num_arguments, plan, std::move(outputs));
}

// The shapes of the results are not known: run now, launch with what came out.
void run_unplanned(OpInfo& info, Entry& entry, const Arguments& arguments, Values values,
                   Stack& stack, std::int64_t real_ns) {
    const bool must_wait = depends_on_data(info, arguments);
    std::vector<c10::IValue> outputs = run_and_see(info, values, arguments);
    Execution* execution = entry.execution;
    if (must_wait || execution == nullptr) {
        execution = &describe_seen(info, values, results_of(info, values, outputs));
        entry.execution = execution;
    }
    launch_input_copies(info, arguments, real_ns);
    launch(*execution, arguments.core, real_ns);
    const std::int32_t core = arguments.core;
    torch::jit::drop(stack, values.size());
    for (c10::IValue& output : outputs) stack.push_back(std::move(output));
    if (must_wait && !is_in_graph()) {
        Timeline::instance().wait_stream(core, current_stream(core), WaitKind::kRead,
                                         waiter_here());
    }
}

}  // namespace

void execute(const c10::OperatorHandle& op, Stack* stack) {
    const std::int64_t real_ns = real_now_ns();
    OpInfo& info = op_info(op);
    const std::size_t num_arguments = info.arguments.size();
    const Values values = torch::jit::last(*stack, num_arguments);
    const Arguments arguments = collect(op, values, info.may_mix_devices);
    Entry& entry = get_entry(info, values, arguments);
    if (!entry.plan.is_known) {
        run_unplanned(info, entry, arguments, values, *stack, real_ns);
    } else if (entry.plan.is_view) {
        run_view(entry.plan, arguments, num_arguments, *stack);
    } else {
        run_planned(info, entry, arguments, values, *stack, real_ns);
    }
}

}  // namespace trnscope::sim
