#pragma once
// Between tensors of the device and the CPU tensors, on their twins, that kernels compute with.

#include "arguments.h"

namespace trnscope::sim {

// The same values as a CPU tensor on the tensor's twin. A tensor of the host is copied, for the
// program may change it before the worker reads it.
at::Tensor to_twin(const at::Tensor& tensor);
// A copy of a host tensor that the profiler of memory does not see.
at::Tensor snapshot(const at::Tensor& tensor);
// Gives each twin memory; on the worker, before the kernel runs.
void materialize_twins(const c10::IValue& value);
void materialize_twin(const at::Tensor& twin);

// Fills the planned result with what the kernel returned: takes its memory where it can.
void settle(const at::Tensor& planned, const at::Tensor& computed);

}  // namespace trnscope::sim
