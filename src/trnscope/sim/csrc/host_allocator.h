#pragma once
// Pinned host memory.

#include <ATen/core/CachingHostAllocator.h>

#include "torch_headers.h"

namespace trnscope::sim {

at::HostAllocator& host_allocator();
bool is_pinned(const void* address);

}  // namespace trnscope::sim
