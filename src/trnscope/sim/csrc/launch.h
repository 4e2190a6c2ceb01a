#pragma once
// From an execution's cost to a record in virtual time.

#include "execution.h"

namespace trnscope::sim {

// Launches on the core's current stream. Inside a graph nothing is launched: the graph is one
// execution, launched when its bracket closes.
void launch(Execution& execution, std::int32_t core, std::int64_t host_real_ns);
void launch_on(Execution& execution, std::int32_t core, std::int64_t stream,
               std::int64_t host_real_ns);

// A stretch of ops on this thread that run as one compiled graph.
void begin_graph();
// Launches the graph; null: the ops are forgotten, as after an error.
void end_graph(Execution* execution, std::int32_t core);
bool is_in_graph();

// Ops that only the host carries out.
void host_only();

}  // namespace trnscope::sim
