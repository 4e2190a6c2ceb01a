#pragma once
// The "neuron" backend of torch.distributed.

#include <pybind11/pybind11.h>

namespace trnscope::sim {

// Needs torch.distributed's own classes, so it is called once that is imported.
void bind_process_group(pybind11::module_& module);

}  // namespace trnscope::sim
