#include "registration.h"

#include <array>

#include "execute.h"
#include "torch_headers.h"

namespace trnscope::sim {
namespace {

using c10::DispatchKey;

// Ops that compute but that torch composes of others, where a device has them in one piece; and
// those that torch routes to accelerators only.
constexpr std::array kAlsoWhole{
    "aten::convolution",
    "aten::convolution_backward",
    "aten::embedding",
    "aten::_scaled_dot_product_fused_attention_overrideable",
    "aten::_scaled_dot_product_fused_attention_overrideable_backward",
    "aten::_fused_rms_norm",
    "aten::_fused_rms_norm_backward",
    "aten::_thnn_fused_lstm_cell",
    "aten::_thnn_fused_lstm_cell_backward_impl",
    "aten::_thnn_fused_gru_cell",
    "aten::_thnn_fused_gru_cell_backward",
};

void register_op(const c10::OperatorName& name) {
    static auto* handles = new std::vector<c10::RegistrationHandleRAII>();
    handles->push_back(c10::Dispatcher::singleton().registerImpl(
        name, DispatchKey::PrivateUse1, c10::KernelFunction::makeFromBoxedFunction<&execute>(),
        std::nullopt, nullptr, "trnscope: simulated neuron device"));
}

// Ops over lists of tensors are composed of the op that they repeat; here each is one execution.
bool is_list_op(const c10::OperatorName& name) {
    return name.name.starts_with("aten::_foreach_");
}

bool computes(const c10::OperatorHandle& op) {
    if (op.hasKernelForDispatchKey(DispatchKey::CPU)) return true;
    return is_list_op(op.operator_name()) &&
           op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
}

bool is_aten(const c10::OperatorName& name) {
    return name.name.starts_with("aten::");
}

}  // namespace

void register_ops() {
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        const auto op = dispatcher.findOp(name);
        const bool is_candidate = is_aten(name) && op.has_value() && op->hasSchema() &&
                                  computes(*op) &&
                                  !op->hasKernelForDispatchKey(DispatchKey::PrivateUse1);
        if (is_candidate) register_op(name);
    }
    for (const char* name : kAlsoWhole) register_op({name, ""});
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&execute>());
}

}  // namespace trnscope::sim
