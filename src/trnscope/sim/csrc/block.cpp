#include "block.h"

#include <sys/mman.h>

#include <mutex>
#include <unordered_map>

#include "settings.h"

namespace trnscope::sim {
namespace {

struct Addresses {
    std::mutex mutex;
    std::unordered_map<const void*, Block*> blocks;
};

Addresses& addresses() {
    static auto* addresses = new Addresses();
    return *addresses;
}

struct Mapping {
    void* address;
    std::size_t bytes;
};

void unmap(void* context) {
    auto* mapping = static_cast<Mapping*>(context);
    munmap(mapping->address, mapping->bytes);
    delete mapping;
}

// Zeros that take no memory until they are written.
c10::DataPtr map_zeros(std::size_t bytes) {
    void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(address != MAP_FAILED, "neuron: cannot map ", bytes, " bytes");
    return {address, new Mapping{address, bytes}, &unmap, c10::Device(c10::kCPU)};
}

}  // namespace

c10::Storage new_twin(std::int64_t bytes) {
    return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), bytes, c10::DataPtr(nullptr, c10::Device(c10::kCPU)),
        c10::GetCPUAllocator(), /*resizable=*/true));
}

void materialize(c10::StorageImpl& twin) {
    if (twin.nbytes() == 0 || twin.data() != nullptr) return;
    twin.set_data_ptr_noswap(settings().numerics ? c10::GetCPUAllocator()->allocate(twin.nbytes())
                                                 : map_zeros(twin.nbytes()));
}

void register_address(const void* address, Block* block) {
    std::lock_guard lock(addresses().mutex);
    addresses().blocks[address] = block;
}

void forget_address(const void* address) {
    std::lock_guard lock(addresses().mutex);
    addresses().blocks.erase(address);
}

Block& block_of(const c10::StorageImpl& storage) {
    auto* block = static_cast<Block*>(storage.data_ptr().get_context());
    if (block != nullptr) return *block;
    std::lock_guard lock(addresses().mutex);
    const auto found = addresses().blocks.find(storage.data());
    TORCH_CHECK(found != addresses().blocks.end(),
                "neuron: this storage was not made by the neuron allocator");
    return *found->second;
}

Block& block_of(const at::Tensor& tensor) {
    return block_of(*tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

}  // namespace trnscope::sim
