#pragma once
// One step of an LSTM or a GRU from its gates, and its gradient, out of elementary ops.

#include <optional>
#include <tuple>

#include "torch_headers.h"

namespace trnscope::sim {

struct Gates {
    at::Tensor input;   // input times its weights
    at::Tensor hidden;  // hidden state times its weights
    std::optional<at::Tensor> input_bias;
    std::optional<at::Tensor> hidden_bias;
};

struct GruGrads {
    at::Tensor input_gates, hidden_gates, hidden, input_bias, hidden_bias;
};

// -> hidden state, cell state, activated gates
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_forward(const Gates& gates,
                                                                 const at::Tensor& cell);
// -> gradients of the gates, of the cell state before, of the bias
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const std::optional<at::Tensor>& grad_hidden, const std::optional<at::Tensor>& grad_cell,
    const at::Tensor& cell_before, const at::Tensor& cell_after, const at::Tensor& workspace,
    bool has_bias);
// -> hidden state, workspace
std::tuple<at::Tensor, at::Tensor> gru_cell_forward(const Gates& gates, const at::Tensor& hidden);
GruGrads gru_cell_backward(const at::Tensor& grad_hidden, const at::Tensor& workspace,
                           bool has_bias);

}  // namespace trnscope::sim
