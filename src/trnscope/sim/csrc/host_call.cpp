#include "host_call.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include "convert.h"
#include "generator.h"
#include "op_info.h"

namespace trnscope::sim {

HostCall make_host_call(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                        const Arguments& arguments) {
    HostCall call;
    call.stack.reserve(values.size());
    const auto replace = [&](const at::Tensor& tensor) {
        const std::size_t place = call.twins.size();
        for (std::size_t i = 0; i < place; ++i) {
            if (!arguments.tensors[i].tensor->is_same(tensor)) continue;
            call.twins.push_back(call.twins[i]);
            return call.twins.back();
        }
        call.twins.push_back(to_twin(tensor));
        return call.twins.back();
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
        const c10::IValue& value = values[i];
        if (static_cast<int>(i) == info.generator_argument) {
            call.generator = inner_generator(
                value.isGenerator() ? value.toGenerator() : default_generator(arguments.core));
            call.stack.emplace_back(*call.generator);
        } else if (value.isDevice()) {
            call.stack.emplace_back(c10::Device(c10::kCPU));
        } else {
            call.stack.push_back(with_tensors(value, replace));
        }
    }
    if (info.substitute != nullptr) {
        call.generator = inner_generator(default_generator(arguments.core));
    }
    return call;
}

void run_host_call(const OpInfo& info, HostCall& call) {
    for (const c10::IValue& value : call.stack) materialize_twins(value);
    if (info.substitute != nullptr) {
        info.substitute(call.stack, call.generator);
    } else {
        info.op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &call.stack);
    }
}

}  // namespace trnscope::sim
