#pragma once
// How an op of torch runs on the device: its results exist at once, its numbers come later.

#include "torch_headers.h"

namespace trnscope::sim {

void execute(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace trnscope::sim
