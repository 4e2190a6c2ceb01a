#pragma once
// Random numbers of the device: a CPU generator of its own, so that one seed gives CPU's numbers.

#include "torch_headers.h"

namespace trnscope::sim {

const at::Generator& default_generator(std::int32_t core);
at::Generator new_generator(std::int32_t core);
// The CPU generator inside a generator of the device.
at::Generator inner_generator(const at::Generator& generator);

}  // namespace trnscope::sim
