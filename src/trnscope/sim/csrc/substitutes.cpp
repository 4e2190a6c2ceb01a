#include "substitutes.h"

#include <unordered_map>

#include "recurrent.h"
#include "rms_norm.h"

namespace trnscope::sim {
namespace {

using Stack = torch::jit::Stack;

std::optional<at::Tensor> optional_tensor(const c10::IValue& value) {
    return value.isNone() || !value.toTensor().defined() ? std::nullopt
                                                         : std::optional(value.toTensor());
}

std::optional<double> optional_double(const c10::IValue& value) {
    return value.isNone() ? std::nullopt : std::optional(value.toDouble());
}

void replace(Stack& stack, std::vector<c10::IValue> results) {
    stack = std::move(results);
}

// (query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask, *, scale)
void attention(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    const at::Tensor query = stack[0].toTensor();
    const std::int64_t max_q = query.size(2);
    const std::int64_t max_k = stack[1].toTensor().size(2);
    auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
        query, stack[1].toTensor(), stack[2].toTensor(), stack[4].toDouble(), stack[5].toBool(),
        optional_tensor(stack[3]), optional_double(stack[7]));
    replace(stack, {output, logsumexp, at::Tensor(), at::Tensor(), max_q, max_k, at::Tensor(),
                    at::Tensor(), at::Tensor()});
}

// (grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q, cum_seq_k,
//  max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset, *, scale)
void attention_backward(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    auto [grad_query, grad_key, grad_value] =
        at::_scaled_dot_product_flash_attention_for_cpu_backward(
            stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(), stack[3].toTensor(),
            stack[6].toTensor(), stack[7].toTensor(), stack[12].toDouble(), stack[13].toBool(),
            optional_tensor(stack[4]), optional_double(stack[16]));
    replace(stack, {grad_query, grad_key, grad_value, at::Tensor()});
}

// (input, p, train): as the CPU's, but with the device's generator.
void dropout(Stack& stack, const std::optional<at::Generator>& generator) {
    const at::Tensor input = stack[0].toTensor();
    const double p = stack[1].toDouble();
    const bool is_training = stack[2].isNone() || stack[2].toBool();
    const auto mask_options = input.options().dtype(c10::kBool);
    if (!is_training || input.numel() == 0) {
        return replace(stack, {input.clone(), at::ones_like(input, mask_options)});
    }
    const double keep = 1.0 - p;
    at::Tensor mask = at::empty_like(input, mask_options).bernoulli_(keep, generator);
    at::Tensor output = input.mul(mask).mul_(keep == 0.0 ? 0.0 : 1.0 / keep);
    replace(stack, {output, mask});
}

void lstm_cell(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    auto [hidden, cell, workspace] =
        lstm_cell_forward({stack[0].toTensor(), stack[1].toTensor(), optional_tensor(stack[3]),
                           optional_tensor(stack[4])},
                          stack[2].toTensor());
    replace(stack, {hidden, cell, workspace});
}

void lstm_cell_grad(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    auto [gates, cell, bias] = lstm_cell_backward(
        optional_tensor(stack[0]), optional_tensor(stack[1]), stack[2].toTensor(),
        stack[3].toTensor(), stack[4].toTensor(), stack[5].toBool());
    replace(stack, {gates, cell, bias});
}

void gru_cell(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    auto [hidden, workspace] =
        gru_cell_forward({stack[0].toTensor(), stack[1].toTensor(), optional_tensor(stack[3]),
                          optional_tensor(stack[4])},
                         stack[2].toTensor());
    replace(stack, {hidden, workspace});
}

void gru_cell_grad(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    GruGrads grads = gru_cell_backward(stack[0].toTensor(), stack[1].toTensor(), stack[2].toBool());
    replace(stack, {grads.input_gates, grads.hidden_gates, grads.hidden, grads.input_bias,
                    grads.hidden_bias});
}

// (input, normalized_shape, weight, eps)
void rms_norm(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    const auto num_dims = static_cast<std::int64_t>(stack[1].toIntVector().size());
    auto [result, rstd] = rms_norm_forward(stack[0].toTensor(), num_dims, optional_tensor(stack[2]),
                                           optional_double(stack[3]));
    replace(stack, {result, rstd});
}

// (grad_out, input, normalized_shape, rstd, weight, output_mask)
void rms_norm_grad(Stack& stack, const std::optional<at::Generator>& /*generator*/) {
    const auto num_dims = static_cast<std::int64_t>(stack[2].toIntVector().size());
    const c10::List<bool> mask = stack[5].toBoolList();
    auto [input, weight] =
        rms_norm_backward(stack[0].toTensor(), stack[1].toTensor(), num_dims, stack[3].toTensor(),
                          optional_tensor(stack[4]), {mask.get(0), mask.get(1)});
    replace(stack, {input, weight});
}

}  // namespace

Substitute find_substitute(const std::string& name) {
    static const std::unordered_map<std::string, Substitute> all{
        {"aten::_scaled_dot_product_fused_attention_overrideable", &attention},
        {"aten::_scaled_dot_product_fused_attention_overrideable_backward", &attention_backward},
        {"aten::native_dropout", &dropout},
        {"aten::_fused_rms_norm", &rms_norm},
        {"aten::_fused_rms_norm_backward", &rms_norm_grad},
        {"aten::_thnn_fused_lstm_cell", &lstm_cell},
        {"aten::_thnn_fused_lstm_cell_backward_impl", &lstm_cell_grad},
        {"aten::_thnn_fused_gru_cell", &gru_cell},
        {"aten::_thnn_fused_gru_cell_backward", &gru_cell_grad},
    };
    const auto found = all.find(name);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace trnscope::sim
