#pragma once
// Which ops reach the device as one execution each.

namespace trnscope::sim {

// Every op that the CPU has a kernel for; called once, after torch has registered its own.
void register_ops();

}  // namespace trnscope::sim
