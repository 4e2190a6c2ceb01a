#pragma once
// A call of an op as the CPU's kernel takes it.

#include "arguments.h"

namespace trnscope::sim {

struct OpInfo;

struct HostCall {
    torch::jit::Stack stack;
    std::vector<at::Tensor> twins;  // aligned with Arguments::tensors
    std::optional<at::Generator> generator;
};

HostCall make_host_call(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                        const Arguments& arguments);
// On the worker: the results replace the arguments on the call's stack.
void run_host_call(const OpInfo& info, HostCall& call);

}  // namespace trnscope::sim
