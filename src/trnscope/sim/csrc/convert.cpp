#include "convert.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "block.h"

namespace trnscope::sim {
namespace {

bool has_layout_of(const at::Tensor& computed, const at::Tensor& planned) {
    return computed.scalar_type() == planned.scalar_type() && computed.sizes() == planned.sizes() &&
           computed.strides() == planned.strides() && computed.storage_offset() == 0 &&
           planned.storage_offset() == 0 && computed.is_conj() == planned.is_conj() &&
           computed.is_neg() == planned.is_neg();
}

}  // namespace

at::Tensor snapshot(const at::Tensor& tensor) {
    c10::DebugInfoGuard unseen(c10::DebugInfoKind::PROFILER_STATE, nullptr);
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    at::DisableRecordFunctionGuard silent;
    at::Tensor copy = tensor.clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return copy;
}

at::Tensor to_twin(const at::Tensor& tensor) {
    if (!tensor.device().is_privateuseone()) return snapshot(tensor);
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    at::Tensor twin = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(block_of(tensor).twin), c10::DispatchKeySet(c10::DispatchKey::CPU),
        tensor.dtype());
    c10::TensorImpl& twin_impl = *twin.unsafeGetTensorImpl();
    twin_impl.set_sizes_and_strides(impl.sizes(), impl.strides(), impl.storage_offset());
    if (tensor.is_conj()) twin._set_conj(true);
    if (tensor.is_neg()) twin._set_neg(true);
    if (impl.is_wrapped_number()) twin_impl.set_wrapped_number(true);
    return twin;
}

void materialize_twin(const at::Tensor& twin) {
    materialize(*twin.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

void materialize_twins(const c10::IValue& value) {
    each_tensor(value, [](const at::Tensor& tensor) { materialize_twin(tensor); });
}

void settle(const at::Tensor& planned, const at::Tensor& computed) {
    c10::StorageImpl& target =
        *planned.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    c10::StorageImpl& source =
        *computed.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const bool is_owner =
        c10::raw::intrusive_ptr::use_count(&source) == 1 && source.nbytes() >= target.nbytes();
    if (is_owner && has_layout_of(computed, planned)) {
        target.set_data_ptr_noswap(source.set_data_ptr(c10::DataPtr()));
        return;
    }
    TORCH_CHECK(
        computed.sizes() == planned.sizes() && computed.scalar_type() == planned.scalar_type(),
        "neuron: the CPU made ", computed.sizes(), " ", computed.scalar_type(),
        " where torch's meta kernel announced ", planned.sizes(), " ", planned.scalar_type());
    materialize(target);
    planned.copy_(computed);
}

}  // namespace trnscope::sim
