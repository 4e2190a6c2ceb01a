#pragma once
// The current core and stream of the calling thread, and what waits of the host do.

#include <c10/core/Stream.h>

#include <cstdint>

#include "timeline.h"

namespace trnscope::sim {

std::int32_t num_cores();
std::int32_t current_core();
// Throws where there is no such core.
void set_current_core(std::int32_t core);
std::int64_t current_stream(std::int32_t core);
void set_current_stream(std::int32_t core, std::int64_t stream);
std::int64_t new_stream();

std::uint64_t thread_id();
std::int64_t real_now_ns();
Waiter waiter_here();

// The host waits in virtual time and the numbers are computed; throws a kernel's error.
void synchronize_core(std::int32_t core);
void synchronize_stream(std::int32_t core, std::int64_t stream, WaitKind kind);

}  // namespace trnscope::sim
