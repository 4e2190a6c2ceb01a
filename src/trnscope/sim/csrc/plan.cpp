#include "plan.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <set>

#include "op_info.h"
#include "settings.h"

namespace trnscope::sim {
namespace {

using Stack = torch::jit::Stack;

// Meta kernels may be Python: no function mode of the user's may see what they call.
class NoFunctionModes {
  public:
    NoFunctionModes() : before_(at::impl::PythonTorchFunctionTLS::get_disabled_state()) {
        at::impl::PythonTorchFunctionTLS::set_disabled_state(
            at::impl::TorchFunctionDisabledState::ALL_DISABLED);
    }
    ~NoFunctionModes() { at::impl::PythonTorchFunctionTLS::set_disabled_state(before_); }
    NoFunctionModes(const NoFunctionModes&) = delete;
    NoFunctionModes& operator=(const NoFunctionModes&) = delete;

  private:
    at::impl::TorchFunctionDisabledState before_;
};

at::Tensor to_meta(const at::Tensor& tensor) {
    at::Tensor meta =
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
    if (tensor.is_conj()) meta._set_conj(true);
    if (tensor.is_neg()) meta._set_neg(true);
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        meta.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return meta;
}

// The call with tensors that have shapes only; the same tensor twice stays the same.
struct MetaCall {
    Stack stack;
    std::vector<at::Tensor> tensors;  // aligned with Arguments::tensors
};

MetaCall to_meta(c10::ArrayRef<c10::IValue> values, const Arguments& arguments) {
    MetaCall call;
    const auto replace = [&](const at::Tensor& tensor) {
        const auto& all = arguments.tensors;
        const std::size_t place = call.tensors.size();
        for (std::size_t i = 0; i < place; ++i) {
            if (!all[i].tensor->is_same(tensor)) continue;
            call.tensors.push_back(call.tensors[i]);
            return call.tensors[i];
        }
        // A scalar of the host stays one, as in every mixed call of torch.
        call.tensors.push_back(tensor.device().is_cpu() && tensor.dim() == 0 ? tensor
                                                                             : to_meta(tensor));
        return call.tensors.back();
    };
    for (const c10::IValue& value : values) {
        if (value.isDevice()) {
            call.stack.emplace_back(c10::Device(c10::kMeta));
        } else if (value.isGenerator()) {
            call.stack.emplace_back();
        } else {
            call.stack.push_back(with_tensors(value, replace));
        }
    }
    return call;
}

bool run_meta(const OpInfo& info, Stack& stack) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    at::DisableRecordFunctionGuard unseen;
    NoFunctionModes no_modes;
    try {
        if (info.substitute != nullptr) {
            info.substitute(stack, std::nullopt);
        } else {
            info.op.callBoxed(stack);
        }
    } catch (const std::exception&) {
        return false;  // no meta kernel, or a wrong call: then the CPU's kernel says what is wrong
    }
    return true;
}

OutputPlan plan_tensor(const at::Tensor& result, const MetaCall& call) {
    OutputPlan plan;
    plan.dtype = result.dtype();
    plan.sizes = c10::DimVector(result.sizes());
    plan.strides = c10::DimVector(result.strides());
    plan.is_conj = result.is_conj();
    plan.is_neg = result.is_neg();
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
        const at::Tensor& tensor = call.tensors[i];
        plan.tensor = static_cast<std::int32_t>(i);
        if (tensor.is_same(result)) {
            plan.kind = OutputPlan::kArgument;
            return plan;
        }
        if (tensor.is_alias_of(result)) {
            plan.kind = OutputPlan::kView;
            plan.offset = result.storage_offset() - tensor.storage_offset();
            return plan;
        }
    }
    return plan;
}

OutputPlan plan_value(const c10::IValue& value, const MetaCall& call) {
    if (value.isTensor() && value.toTensor().defined()) return plan_tensor(value.toTensor(), call);
    OutputPlan plan;
    plan.kind = OutputPlan::kConstant;
    plan.constant = value;
    return plan;
}

void plan_return(const c10::IValue& value, const MetaCall& call, Plan& plan) {
    if (!value.isTensorList()) {
        plan.returns.push_back({false, 1});
        plan.outputs.push_back(plan_value(value, call));
        return;
    }
    const auto items = value.toListRef();
    plan.returns.push_back({true, static_cast<std::int32_t>(items.size())});
    for (const c10::IValue& item : items) plan.outputs.push_back(plan_value(item, call));
}

void plan_reshapes(const Arguments& arguments, const MetaCall& call, Plan& plan) {
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
        const at::Tensor& before = *arguments.tensors[i].tensor;
        const at::Tensor& after = call.tensors[i];
        if (before.sizes() == after.sizes() && before.strides() == after.strides()) continue;
        plan.reshapes.push_back({static_cast<std::int32_t>(i), c10::DimVector(after.sizes()),
                                 c10::DimVector(after.strides())});
    }
}

// Where the CPU's kernel leaves results out that the meta kernel announces.
bool is_meta_wrong(const OpInfo& info, c10::ArrayRef<c10::IValue> values) {
    static const std::set<std::string> names{
        "aten::_embedding_bag",          "aten::_embedding_bag_forward_only",
        "aten::native_batch_norm",       "aten::_native_batch_norm_legit",
        "aten::_batch_norm_with_update", "aten::_native_batch_norm_legit_no_training",
    };
    if (!settings().numerics || !names.contains(info.name)) return false;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (info.arguments[i].name == "training") return !values[i].toBool();
    }
    return true;
}

bool writes_nothing(const OpInfo& info) {
    for (const ArgumentInfo& argument : info.arguments) {
        if (argument.is_written) return false;
    }
    return true;
}

bool is_view(const OpInfo& info, const Plan& plan) {
    if (info.changes_shape) return true;
    if (!writes_nothing(info) || plan.outputs.empty()) return false;
    for (const OutputPlan& output : plan.outputs) {
        if (output.kind != OutputPlan::kView && output.kind != OutputPlan::kArgument) return false;
    }
    return true;
}

}  // namespace

bool depends_on_data(const OpInfo& info, const Arguments& arguments) {
    if (!info.depends_on_data || !info.may_mix_devices) return info.depends_on_data;
    for (const TensorArgument& argument : arguments.tensors) {
        const c10::ScalarType type = argument.tensor->scalar_type();
        const bool is_mask = type == c10::kBool || type == c10::kByte;
        if (argument.argument > 0 && is_mask) return true;
    }
    return false;
}

Plan make_plan(const OpInfo& info, c10::ArrayRef<c10::IValue> values, const Arguments& arguments) {
    Plan plan;
    if (depends_on_data(info, arguments) || is_meta_wrong(info, values)) return plan;
    MetaCall call = to_meta(values, arguments);
    if (!run_meta(info, call.stack)) return plan;
    for (const c10::IValue& value : call.stack) plan_return(value, call, plan);
    plan_reshapes(arguments, call, plan);
    plan.is_view = is_view(info, plan);
    plan.is_known = true;
    return plan;
}

}  // namespace trnscope::sim
