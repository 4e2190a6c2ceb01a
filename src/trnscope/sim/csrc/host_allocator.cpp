// Pinned host memory. To the host it is ordinary memory; the device knows which addresses it is.

#include "host_allocator.h"

#include <c10/core/impl/alloc_cpu.h>

#include <mutex>
#include <unordered_map>

namespace trnscope::sim {
namespace {

struct Pinned {
    std::mutex mutex;
    std::unordered_map<const void*, std::size_t> bytes_at;
    at::HostStats stats;
};

Pinned& pinned() {
    static auto* pinned = new Pinned();
    return *pinned;
}

void free_pinned(void* address) {
    {
        std::lock_guard lock(pinned().mutex);
        pinned().bytes_at.erase(address);
    }
    c10::free_cpu(address);
}

struct NeuronHostAllocator final : at::HostAllocator {
    c10::DataPtr allocate(std::size_t bytes) override {
        void* address = c10::alloc_cpu(bytes);
        if (address != nullptr) {
            std::lock_guard lock(pinned().mutex);
            pinned().bytes_at[address] = bytes;
        }
        return {address, address, &free_pinned, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }
    bool record_event(void* /*address*/, void* /*context*/, c10::Stream /*stream*/) override {
        return true;
    }
    void empty_cache() override {}
    at::HostStats get_stats() override { return pinned().stats; }
    void reset_accumulated_stats() override {}
    void reset_peak_stats() override {}
};

NeuronHostAllocator& the_allocator() {
    static auto* allocator = new NeuronHostAllocator();
    return *allocator;
}

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &the_allocator())

}  // namespace

at::HostAllocator& host_allocator() {
    return the_allocator();
}

bool is_pinned(const void* address) {
    std::lock_guard lock(pinned().mutex);
    return pinned().bytes_at.contains(address);
}

}  // namespace trnscope::sim
