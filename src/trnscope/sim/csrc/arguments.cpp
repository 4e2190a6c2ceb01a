#include "arguments.h"

#include "device.h"

namespace trnscope::sim {
namespace {

void check_device(const c10::OperatorHandle& op, const at::Tensor& tensor, const Arguments& found,
                  bool may_mix_devices) {
    const c10::Device device = tensor.device();
    if (device.is_cpu() && (tensor.dim() == 0 || may_mix_devices)) return;
    if (device.is_privateuseone() && device.index() == found.core) return;
    TORCH_CHECK(false,
                "Expected all tensors to be on the same device, but found at least two "
                "devices, neuron:",
                found.core, " and ", device, "! (in a call of ", op.operator_name(), ")");
}

void check_layout(const c10::OperatorHandle& op, const at::Tensor& tensor) {
    TORCH_CHECK(tensor.layout() == c10::kStrided && !tensor.is_quantized(),
                "neuron: ", op.operator_name(), " has no implementation for ", tensor.layout(),
                " or quantized tensors");
}

std::int32_t core_of_device_argument(c10::ArrayRef<c10::IValue> values) {
    for (const c10::IValue& value : values) {
        if (!value.isDevice()) continue;
        const c10::Device device = value.toDevice();
        if (device.is_privateuseone() && device.has_index()) return device.index();
    }
    return current_core();
}

}  // namespace

Arguments collect(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values,
                  bool may_mix_devices) {
    Arguments found;
    bool has_core = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
        each_tensor(values[i], [&](const at::Tensor& tensor) {
            found.tensors.push_back({&tensor, static_cast<std::int32_t>(i)});
            if (has_core || !tensor.device().is_privateuseone()) return;
            has_core = true;
            found.core = tensor.device().index();
        });
    }
    if (!has_core) found.core = core_of_device_argument(values);
    for (const TensorArgument& argument : found.tensors) {
        check_layout(op, *argument.tensor);
        check_device(op, *argument.tensor, found, may_mix_devices);
    }
    return found;
}

}  // namespace trnscope::sim
