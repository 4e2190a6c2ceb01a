// Which attention torch chooses on the device: the fused one where the CPU would fuse it too.

#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>

#include "torch_headers.h"

namespace trnscope::sim {
namespace {

using at::Tensor;

enum Choice : std::int64_t { kMath = 0, kOverrideable = 4 };

bool has_fused_type(const Tensor& tensor) {
    const c10::ScalarType type = tensor.scalar_type();
    return type == c10::kFloat || type == c10::kDouble || type == c10::kBFloat16 ||
           type == c10::kHalf;
}

bool is_dense_4d(const Tensor& tensor) {
    return tensor.dim() == 4 && tensor.sym_numel() > 0 && tensor.sym_stride(-1) == 1 &&
           has_fused_type(tensor);
}

bool have_fitting_heads(const Tensor& query, const Tensor& key, const Tensor& value,
                        bool enable_gqa) {
    const auto equal = [&](int dim) {
        return query.sym_size(dim) == key.sym_size(dim) &&
               query.sym_size(dim) == value.sym_size(dim);
    };
    // Grouped queries: several heads of the query share one of key and value.
    const bool are_groups = enable_gqa && key.sym_size(1) == value.sym_size(1) &&
                            query.sym_size(1) % key.sym_size(1) == 0;
    return equal(0) && (equal(1) || are_groups) && equal(3);
}

bool can_fuse(const Tensor& query, const Tensor& key, const Tensor& value,
              const std::optional<Tensor>& mask, double dropout_p, bool enable_gqa) {
    if (mask.has_value() && mask->requires_grad()) return false;
    return dropout_p == 0.0 && is_dense_4d(query) && is_dense_4d(key) && is_dense_4d(value) &&
           query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type() &&
           have_fitting_heads(query, key, value, enable_gqa);
}

std::int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value,
                    const std::optional<Tensor>& mask, double dropout_p, bool /*is_causal*/,
                    std::optional<double> /*scale*/, bool enable_gqa) {
    const bool allowed = at::globalContext().userEnabledFlashSDP() ||
                         at::globalContext().userEnabledOverrideableSDP();
    return allowed && can_fuse(query, key, value, mask, dropout_p, enable_gqa) ? kOverrideable
                                                                               : kMath;
}

}  // namespace
}  // namespace trnscope::sim

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &trnscope::sim::choose)
}  // namespace at::native
