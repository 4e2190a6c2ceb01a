#pragma once
// RMSNorm and its gradient in one piece each, with the CPU's own arithmetic in the CPU's order, so
// that values are equal bit by bit.

#include <array>
#include <optional>
#include <tuple>

#include "torch_headers.h"

namespace trnscope::sim {

// -> normalised input, reciprocal root of the mean of squares (in the type sums are made in)
std::tuple<at::Tensor, at::Tensor> rms_norm_forward(const at::Tensor& input, std::int64_t num_dims,
                                                    const std::optional<at::Tensor>& weight,
                                                    std::optional<double> eps);
// -> gradients of the input and of the weight; undefined where `wanted` is false
std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad,
                                                     const at::Tensor& input, std::int64_t num_dims,
                                                     const at::Tensor& rstd,
                                                     const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted);

}  // namespace trnscope::sim
