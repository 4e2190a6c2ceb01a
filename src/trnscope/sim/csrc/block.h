#pragma once
// A tensor's memory: its place in the simulated HBM and its twin, the host memory with its values.
//
// The twin is a CPU storage that the numerics worker fills in and swaps; it stays without memory
// until a kernel first touches it. Only the worker, or a thread that waits for it, reads it.

#include "torch_headers.h"

namespace trnscope::sim {

struct Block {
    void* address = nullptr;  // on the device; null: no bytes
    std::int32_t core = 0;
    std::int64_t taken_bytes = 0;  // of the core's HBM
    c10::Storage twin;
};

// A CPU storage without memory as yet.
c10::Storage new_twin(std::int64_t bytes);
// Gives the twin memory if it has none: zeros without numerics, else whatever is there.
void materialize(c10::StorageImpl& twin);

// Code of torch may wrap a device address anew: then the block is found by it.
void register_address(const void* address, Block* block);
void forget_address(const void* address);

Block& block_of(const c10::StorageImpl& storage);
Block& block_of(const at::Tensor& tensor);

}  // namespace trnscope::sim
