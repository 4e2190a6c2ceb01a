#pragma once
// CPU versions of ops that torch routes to accelerators only, or that draw random numbers from the
// CPU's own generator. Each works on CPU tensors (numbers) and on meta tensors (shapes) alike.

#include <optional>
#include <string>

#include "torch_headers.h"

namespace trnscope::sim {

using Substitute = void (*)(torch::jit::Stack& stack,
                            const std::optional<at::Generator>& generator);

// Null where the op's own kernel serves.
Substitute find_substitute(const std::string& name);

}  // namespace trnscope::sim
