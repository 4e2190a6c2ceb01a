// Ops that only make or change tensors, and those that every program calls most often.

#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>

#include "allocator.h"
#include "copy.h"
#include "device.h"
#include "execute.h"
#include "launch.h"

namespace trnscope::sim {
namespace {

using at::Tensor;

std::int32_t core_of(std::optional<c10::Device> device) {
    const bool has_index = device.has_value() && device->has_index();
    if (!has_index) return current_core();
    TORCH_CHECK(device->index() < num_cores(), *device, " does not exist; there are ", num_cores(),
                " simulated cores");
    return device->index();
}

caffe2::TypeMeta dtype_of(std::optional<c10::ScalarType> dtype) {
    return c10::scalarTypeToTypeMeta(dtype.value_or(c10::get_default_dtype_as_scalartype()));
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
    TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided,
                "neuron: only dense tensors exist on the device");
    TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

void check_sizes(c10::IntArrayRef sizes) {
    for (const std::int64_t size : sizes) {
        TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ",
                    sizes);
    }
}

c10::DimVector strides_of(c10::IntArrayRef sizes, std::optional<c10::MemoryFormat> format) {
    switch (format.value_or(c10::MemoryFormat::Contiguous)) {
        case c10::MemoryFormat::ChannelsLast: {
            const auto strides = c10::get_channels_last_strides_2d(sizes);
            return {strides.begin(), strides.end()};
        }
        case c10::MemoryFormat::ChannelsLast3d: {
            const auto strides = c10::get_channels_last_strides_3d(sizes);
            return {strides.begin(), strides.end()};
        }
        default:
            return c10::contiguous_strides(sizes);
    }
}

Tensor empty(c10::SymIntArrayRef size, std::optional<c10::ScalarType> dtype,
             std::optional<c10::Layout> layout, std::optional<c10::Device> device,
             std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
    check_options(layout, pin_memory);
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    check_sizes(sizes);
    host_only();
    return new_tensor(core_of(device), sizes, strides_of(sizes, format), dtype_of(dtype));
}

Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                     std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                     std::optional<c10::Device> device, std::optional<bool> pin_memory) {
    check_options(layout, pin_memory);
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    check_sizes(sizes);
    host_only();
    return new_tensor(core_of(device), sizes, C10_AS_INTARRAYREF_SLOW(stride), dtype_of(dtype));
}

Tensor view(const Tensor& self, c10::SymIntArrayRef size) {
    host_only();
    return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

Tensor as_strided(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                  std::optional<c10::SymInt> offset) {
    host_only();
    std::optional<std::int64_t> plain;
    if (offset.has_value()) plain = offset->guard_int(__FILE__, __LINE__);
    return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size),
                                             C10_AS_INTARRAYREF_SLOW(stride), plain);
}

Tensor reshape_alias(const Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
    host_only();
    return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size),
                                             C10_AS_INTARRAYREF_SLOW(stride),
                                             self.storage_offset());
}

// Memory that a tensor of these sizes needs, from the start of its storage.
void make_room(const Tensor& self) {
    c10::StorageImpl& storage =
        *self.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const std::int64_t needed =
        bytes_of(self.sizes(), self.strides(), self.storage_offset(), self.dtype().itemsize());
    if (needed > static_cast<std::int64_t>(storage.nbytes())) resize(storage, needed);
}

const Tensor& resize_(const Tensor& self, c10::SymIntArrayRef size,
                      std::optional<c10::MemoryFormat> format) {
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    host_only();
    if (self.sizes() == sizes) return self;
    self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides_of(sizes, format));
    make_room(self);
    return self;
}

Tensor& set_to_storage_at(Tensor& self, c10::Storage source, c10::SymInt offset,
                          c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
    c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    const auto given = C10_AS_INTARRAYREF_SLOW(stride);
    const c10::DimVector strides =
        given.data() == nullptr ? c10::contiguous_strides(sizes) : c10::DimVector(given);
    impl.set_storage_keep_dtype(std::move(source));
    impl.set_sizes_and_strides(sizes, strides, offset.guard_int(__FILE__, __LINE__));
    make_room(self);
    return self;
}

Tensor& set_to_storage(Tensor& self, c10::Storage source) {
    const auto items = static_cast<std::int64_t>(source.nbytes() / self.dtype().itemsize());
    return set_to_storage_at(self, std::move(source), 0, {c10::SymInt(items)}, {});
}

Tensor& set_to_tensor(Tensor& self, const Tensor& source) {
    if (self.is_same(source)) return self;
    return set_to_storage_at(self, source.storage(), source.storage_offset(), source.sym_sizes(),
                             source.sym_strides());
}

Tensor& set_to_nothing(Tensor& self) {
    c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
    impl.set_storage_keep_dtype(new_storage(self.device().index(), 0));
    impl.set_sizes_and_strides(c10::IntArrayRef{0}, c10::IntArrayRef{1}, 0);
    return self;
}

Tensor& copy_in_place(Tensor& self, const Tensor& source, bool is_async) {
    copy_tensor(source, self, is_async);
    return self;
}

Tensor copy_from(const Tensor& source, const Tensor& target, bool is_async) {
    copy_tensor(source, target, is_async);
    return target;
}

Tensor copy_from_and_resize(const Tensor& source, const Tensor& target) {
    target.resize_(source.sizes());
    copy_tensor(source, target, /*is_async=*/false);
    return target;
}

void record_stream(Tensor& /*self*/, c10::Stream /*stream*/) {}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", TORCH_FN(empty));
    m.impl("empty_strided", TORCH_FN(empty_strided));
    m.impl("view", TORCH_FN(view));
    m.impl("as_strided", TORCH_FN(as_strided));
    m.impl("_reshape_alias", TORCH_FN(reshape_alias));
    m.impl("resize_", TORCH_FN(resize_));
    m.impl("set_.source_Storage", TORCH_FN(set_to_storage));
    m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_to_storage_at));
    m.impl("set_.source_Tensor", TORCH_FN(set_to_tensor));
    m.impl("set_", TORCH_FN(set_to_nothing));
    m.impl("copy_", TORCH_FN(copy_in_place));
    m.impl("_copy_from", TORCH_FN(copy_from));
    m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
    m.impl("_local_scalar_dense", TORCH_FN(read_value));
    m.impl("record_stream", TORCH_FN(record_stream));
}

// Else a copy of a conjugated tensor to the host would conjugate by a copy, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
    m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
    m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace trnscope::sim
