#pragma once
// Ops whose results' shapes only their run shows: nonzero, unique, ops without a meta kernel.

#include "execution.h"
#include "op_info.h"

namespace trnscope::sim {

// Runs the op and waits for it; its results as tensors of the device.
std::vector<c10::IValue> run_and_see(OpInfo& info, c10::ArrayRef<c10::IValue> values,
                                     const Arguments& arguments);
// The execution of a call with these results; asked once for each shape of them.
Execution& describe_seen(OpInfo& info, c10::ArrayRef<c10::IValue> values,
                         const std::vector<at::Tensor>& results);

}  // namespace trnscope::sim
