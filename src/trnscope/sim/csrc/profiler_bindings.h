#pragma once
// What Python sees of the observer and of the profiler's plugin.

#include <pybind11/pybind11.h>

namespace trnscope::sim {

void bind_profilers(pybind11::module_& module);

}  // namespace trnscope::sim
