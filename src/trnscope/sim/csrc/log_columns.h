#pragma once
// The launch log as numpy columns.

#include <torch/csrc/utils/pybind.h>

namespace trnscope::sim {

pybind11::dict launch_columns();
pybind11::dict wait_columns();

}  // namespace trnscope::sim
