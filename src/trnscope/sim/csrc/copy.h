#pragma once
// Copies between the host and the cores, and among cores.

#include "torch_headers.h"

namespace trnscope::sim {

void copy_tensor(const at::Tensor& from, const at::Tensor& to, bool is_async);
// Reads one value; the host waits for it.
at::Scalar read_value(const at::Tensor& tensor);

}  // namespace trnscope::sim
