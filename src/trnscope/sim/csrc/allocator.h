#pragma once
// Tensors on the device: memory, storages, and their statistics.

#include "block.h"

namespace trnscope::sim {

c10::DeviceAllocator& allocator();
c10::DataPtr allocate_on(std::int32_t core, std::int64_t bytes);
c10::Storage new_storage(std::int32_t core, std::int64_t bytes);
// A storage around values that exist already.
c10::Storage adopt_storage(std::int32_t core, const c10::Storage& twin);
// The storage's HBM becomes at least so large; its twin is left to the caller.
void grow(c10::StorageImpl& storage, std::int64_t bytes);
// As Tensor.untyped_storage().resize_: keeps the values, frees at zero.
void resize(c10::StorageImpl& storage, std::int64_t bytes);

at::Tensor new_tensor(std::int32_t core, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      caffe2::TypeMeta dtype);
std::int64_t bytes_of(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                      std::size_t item_bytes);

}  // namespace trnscope::sim
