#include "allocator.h"

#include "device.h"
#include "hbm.h"
#include "observer.h"
#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

using c10::CachingAllocator::Stat;

void report(void* address, std::int64_t change, std::int32_t core) {
    const auto total = static_cast<std::size_t>(Hbm::instance().stats(core).current);
    c10::reportMemoryUsageToProfiler(
        address, change, total, total,
        c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(core)));
    Observer& observer = Observer::instance();
    if (!observer.is_active()) return;
    observer.on_memory(reinterpret_cast<std::uint64_t>(address), change,
                       static_cast<std::int64_t>(total), core);
}

void take_bytes(std::int32_t core, std::int64_t bytes) {
    Hbm& hbm = Hbm::instance();
    if (hbm.take(core, bytes)) return;
    const std::int64_t used = hbm.stats(core).current;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "neuron out of memory. Tried to allocate ", bytes,
                     " bytes on neuron:", core, ", of whose simulated HBM ",
                     hbm.capacity_bytes() - used, " of ", hbm.capacity_bytes(), " bytes are free");
}

void free_block(void* context) {
    auto* block = static_cast<Block*>(context);
    if (block->taken_bytes > 0) {
        Hbm::instance().give(block->core, block->taken_bytes);
        report(block->address, -block->taken_bytes, block->core);
        forget_address(block->address);
    }
    delete block;
}

// Takes the core's HBM; throws where it has no room.
void place(Block& block, std::int64_t bytes) {
    take_bytes(block.core, round_up(bytes));
    block.taken_bytes = round_up(bytes);
    block.address =
        reinterpret_cast<void*>(Hbm::instance().new_address(block.core, block.taken_bytes));
    register_address(block.address, &block);
    report(block.address, block.taken_bytes, block.core);
}

c10::DataPtr pointer_to(Block* block) {
    return {block->address, block, &free_block,
            c10::Device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(block->core))};
}

c10::DataPtr wrap_block(std::unique_ptr<Block> block, std::int64_t bytes) {
    if (bytes > 0) place(*block, bytes);
    return pointer_to(block.release());
}

c10::Storage storage_around(c10::DataPtr data, std::int64_t bytes) {
    return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                              bytes, std::move(data), &allocator(),
                                                              /*resizable=*/true));
}

Stat to_stat(const MemoryStats& stats) {
    Stat stat;
    stat.current = stats.current;
    stat.peak = stats.peak;
    stat.allocated = stats.allocated;
    stat.freed = stats.freed;
    return stat;
}

Stat to_count(const MemoryStats& stats) {
    Stat stat;
    stat.current = stats.num_allocations - stats.num_frees;
    stat.allocated = stats.num_allocations;
    stat.freed = stats.num_frees;
    return stat;
}

struct NeuronAllocator final : c10::DeviceAllocator {
    c10::DataPtr allocate(std::size_t bytes) override {
        return allocate_on(current_core(), static_cast<std::int64_t>(bytes));
    }
    void copy_data(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) const override {
        TORCH_CHECK(false, "neuron: raw copies of device memory are not possible");
    }
    bool initialized() override { return true; }
    void emptyCache(c10::MempoolId_t /*pool*/) override {}
    void recordStream(const c10::DataPtr& /*data*/, c10::Stream /*stream*/) override {}
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex core) override {
        const MemoryStats stats = Hbm::instance().stats(core);
        c10::CachingDeviceAllocator::DeviceStats result;
        constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
        result.allocated_bytes[kAll] = result.active_bytes[kAll] = to_stat(stats);
        result.requested_bytes[kAll] = to_stat(stats);
        result.allocation[kAll] = result.active[kAll] = to_count(stats);
        result.num_ooms = stats.num_ooms;
        result.num_device_alloc = stats.num_allocations;
        result.num_device_free = stats.num_frees;
        return result;
    }
    void resetAccumulatedStats(c10::DeviceIndex core) override {
        Hbm::instance().reset_accumulated(core);
    }
    void resetPeakStats(c10::DeviceIndex core) override { Hbm::instance().reset_peak(core); }
    std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex core) override {
        const std::int64_t capacity = Hbm::instance().capacity_bytes();
        return {capacity - Hbm::instance().stats(core).current, capacity};
    }
};

NeuronAllocator& the_allocator() {
    static auto* allocator = new NeuronAllocator();
    return *allocator;
}

void copy_twin(const c10::Storage& from, const c10::Storage& to) {
    if (from.data() == nullptr) return;
    materialize(*to.unsafeGetStorageImpl());
    std::memcpy(to.mutable_data(), from.data(), std::min(from.nbytes(), to.nbytes()));
}

REGISTER_ALLOCATOR(c10::kPrivateUse1, &the_allocator())

}  // namespace

c10::DeviceAllocator& allocator() {
    return the_allocator();
}

c10::DataPtr allocate_on(std::int32_t core, std::int64_t bytes) {
    return wrap_block(std::make_unique<Block>(Block{nullptr, core, 0, new_twin(bytes)}), bytes);
}

c10::Storage new_storage(std::int32_t core, std::int64_t bytes) {
    return storage_around(allocate_on(core, bytes), bytes);
}

c10::Storage adopt_storage(std::int32_t core, const c10::Storage& twin) {
    const auto bytes = static_cast<std::int64_t>(twin.nbytes());
    return storage_around(wrap_block(std::make_unique<Block>(Block{nullptr, core, 0, twin}), bytes),
                          bytes);
}

void grow(c10::StorageImpl& storage, std::int64_t bytes) {
    if (bytes <= static_cast<std::int64_t>(storage.nbytes())) return;
    Block& block = block_of(storage);
    const std::int64_t more = round_up(bytes) - block.taken_bytes;
    if (block.address == nullptr) {
        place(block, bytes);
        storage.set_data_ptr(c10::DataPtr()).release_context();
        storage.set_data_ptr_noswap(pointer_to(&block));
    } else if (more > 0) {
        take_bytes(block.core, more);
        block.taken_bytes += more;
        report(block.address, more, block.core);
    }
    storage.set_nbytes(bytes);
}

void resize(c10::StorageImpl& storage, std::int64_t bytes) {
    const Block& old = block_of(storage);
    c10::Storage from = old.twin;
    c10::DataPtr data = allocate_on(old.core, bytes);
    c10::Storage to = static_cast<Block*>(data.get_context())->twin;
    const bool keeps_values = bytes > 0 && storage.nbytes() > 0 && settings().numerics;
    storage.set_data_ptr_noswap(std::move(data));
    storage.set_nbytes(bytes);
    if (keeps_values) Worker::instance().submit("resize", [from, to] { copy_twin(from, to); });
}

std::int64_t bytes_of(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                      std::size_t item_bytes) {
    std::int64_t last = offset;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) return 0;
        last += (sizes[i] - 1) * strides[i];
    }
    return (last + 1) * static_cast<std::int64_t>(item_bytes);
}

at::Tensor new_tensor(std::int32_t core, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      caffe2::TypeMeta dtype) {
    const std::int64_t bytes = bytes_of(sizes, strides, 0, dtype.itemsize());
    at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
        new_storage(core, bytes), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), dtype);
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    return tensor;
}

}  // namespace trnscope::sim
