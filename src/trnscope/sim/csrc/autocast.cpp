// torch.autocast("neuron"): torch's own lists of ops that run in lower precision or in float32.

#include <ATen/autocast_mode.h>

#include "torch_headers.h"

using at::Tensor;

namespace at::autocast {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TRNSCOPE_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TRNSCOPE_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TRNSCOPE_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TRNSCOPE_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(TRNSCOPE_LOWER_PRECISION)
    AT_FORALL_FP32(TRNSCOPE_FP32)
    AT_FORALL_FP32_SET_OPT_DTYPE(TRNSCOPE_FP32_SET_OPT_DTYPE)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(TRNSCOPE_PROMOTE)
}

}  // namespace at::autocast
