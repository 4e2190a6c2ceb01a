#include "recurrent.h"

namespace trnscope::sim {
namespace {

at::Tensor with_bias(const at::Tensor& gates, const std::optional<at::Tensor>& bias) {
    return bias.has_value() ? gates + *bias : gates;
}

at::Tensor or_zeros(const std::optional<at::Tensor>& tensor, const at::Tensor& like) {
    return tensor.has_value() ? *tensor : at::zeros_like(like);
}

at::Tensor sigmoid_grad(const at::Tensor& grad, const at::Tensor& sigmoid) {
    return grad * sigmoid * (1 - sigmoid);
}

at::Tensor tanh_grad(const at::Tensor& grad, const at::Tensor& tanh) {
    return grad * (1 - tanh * tanh);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_forward(const Gates& gates,
                                                                 const at::Tensor& cell) {
    const at::Tensor sum =
        with_bias(gates.hidden, gates.hidden_bias) + with_bias(gates.input, gates.input_bias);
    const auto parts = sum.chunk(4, 1);  // input, forget, candidate, output
    const at::Tensor in = parts[0].sigmoid();
    const at::Tensor forget = parts[1].sigmoid();
    const at::Tensor candidate = parts[2].tanh();
    const at::Tensor out = parts[3].sigmoid();
    at::Tensor cell_after = forget * cell + in * candidate;
    at::Tensor hidden = out * cell_after.tanh();
    return {hidden, cell_after, at::cat({in, forget, candidate, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const std::optional<at::Tensor>& grad_hidden, const std::optional<at::Tensor>& grad_cell,
    const at::Tensor& cell_before, const at::Tensor& cell_after, const at::Tensor& workspace,
    bool has_bias) {
    const auto parts = workspace.chunk(4, 1);
    const at::Tensor &in = parts[0], &forget = parts[1], &candidate = parts[2], &out = parts[3];
    const at::Tensor grad_h = or_zeros(grad_hidden, cell_after);
    const at::Tensor activated = cell_after.tanh();
    const at::Tensor grad_c = or_zeros(grad_cell, cell_after) + tanh_grad(grad_h * out, activated);
    at::Tensor grad_gates =
        at::cat({sigmoid_grad(grad_c * candidate, in), sigmoid_grad(grad_c * cell_before, forget),
                 tanh_grad(grad_c * in, candidate), sigmoid_grad(grad_h * activated, out)},
                1);
    at::Tensor grad_bias = has_bias ? grad_gates.sum(0, /*keepdim=*/false) : at::Tensor();
    return {grad_gates, grad_c * forget, grad_bias};
}

std::tuple<at::Tensor, at::Tensor> gru_cell_forward(const Gates& gates, const at::Tensor& hidden) {
    const auto input = with_bias(gates.input, gates.input_bias).chunk(3, 1);
    const auto state = with_bias(gates.hidden, gates.hidden_bias).chunk(3, 1);
    const at::Tensor reset = (state[0] + input[0]).sigmoid();
    const at::Tensor update = (state[1] + input[1]).sigmoid();
    const at::Tensor candidate = (input[2] + state[2] * reset).tanh();
    at::Tensor hidden_after = (hidden - candidate) * update + candidate;
    return {hidden_after, at::cat({reset, update, candidate, hidden, state[2]}, 1)};
}

GruGrads gru_cell_backward(const at::Tensor& grad_hidden, const at::Tensor& workspace,
                           bool has_bias) {
    const auto parts = workspace.chunk(5, 1);
    const at::Tensor &reset = parts[0], &update = parts[1], &candidate = parts[2];
    const at::Tensor &hidden = parts[3], &state = parts[4];
    const at::Tensor grad_candidate = tanh_grad(grad_hidden * (1 - update), candidate);
    const at::Tensor grad_update = sigmoid_grad(grad_hidden * (hidden - candidate), update);
    const at::Tensor grad_reset = sigmoid_grad(grad_candidate * state, reset);
    GruGrads grads;
    grads.input_gates = at::cat({grad_reset, grad_update, grad_candidate}, 1);
    grads.hidden_gates = at::cat({grad_reset, grad_update, grad_candidate * reset}, 1);
    grads.hidden = grad_hidden * update;
    if (has_bias) {
        grads.input_bias = grads.input_gates.sum(0, /*keepdim=*/false);
        grads.hidden_bias = grads.hidden_gates.sum(0, /*keepdim=*/false);
    }
    return grads;
}

}  // namespace trnscope::sim
