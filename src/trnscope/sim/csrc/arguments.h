#pragma once
// The tensors among an op's boxed arguments.

#include "torch_headers.h"

namespace trnscope::sim {

struct TensorArgument {
    const at::Tensor* tensor = nullptr;  // borrowed from the stack
    std::int32_t argument = 0;
    bool is_on_device() const { return tensor->device().is_privateuseone(); }
};

struct Arguments {
    c10::SmallVector<TensorArgument, 8> tensors;  // lists flattened, undefined ones left out
    std::int32_t core = 0;
};

// Checks that all tensors can be used together; index tensors may live on the host.
Arguments collect(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values,
                  bool may_mix_devices);

// Calls `visit(tensor)` for each defined tensor of an argument.
template <typename Visit>
void each_tensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isList()) {
        for (const c10::IValue& item : value.toListRef()) {
            if (item.isTensor() && item.toTensor().defined()) visit(item.toTensor());
        }
    }
}

// A copy of an argument with each defined tensor replaced.
template <typename Replace>
c10::IValue with_tensors(const c10::IValue& value, Replace&& replace) {
    if (value.isTensor()) {
        return value.toTensor().defined() ? c10::IValue(replace(value.toTensor())) : value;
    }
    if (!value.isTensorList() && !value.isOptionalTensorList()) return value;
    c10::impl::GenericList items(value.toList().elementType());
    for (const c10::IValue& item : value.toListRef()) {
        const bool is_tensor = item.isTensor() && item.toTensor().defined();
        items.push_back(is_tensor ? c10::IValue(replace(item.toTensor())) : item);
    }
    return items;
}

}  // namespace trnscope::sim
