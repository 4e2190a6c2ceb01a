#include "rms_norm.h"

#include <ATen/OpMathType.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace trnscope::sim {
namespace {

// The last `num_dims` dimensions.
std::vector<std::int64_t> normalized_dims(const at::Tensor& input, std::int64_t num_dims) {
    std::vector<std::int64_t> dims(num_dims);
    std::iota(dims.begin(), dims.end(), input.dim() - num_dims);
    return dims;
}

// The other ones.
std::vector<std::int64_t> batch_dims(const at::Tensor& input, std::int64_t num_dims) {
    std::vector<std::int64_t> dims(input.dim() - num_dims);
    std::iota(dims.begin(), dims.end(), 0);
    return dims;
}

at::Tensor in_sum_type(const at::Tensor& input) {
    return input.to(at::toOpMathType(input.scalar_type()));
}

// torch's default: the spacing of numbers near 1 in the type that sums are made in.
double default_eps(const at::Tensor& upcast) {
    return upcast.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                               : std::numeric_limits<float>::epsilon();
}

// Of the mean of squares, given that of its reciprocal root; then of the input.
at::Tensor grad_through_scale(const at::Tensor& grad_rstd, const at::Tensor& rstd,
                              const at::Tensor& upcast) {
    const at::Tensor grad_mean = grad_rstd.mul(-0.5).mul(rstd.pow(3));
    const double num_values = static_cast<double>(upcast.numel()) /
                              static_cast<double>(std::max<std::int64_t>(rstd.numel(), 1));
    const at::Tensor grad_squares = grad_mean.expand_as(upcast).div(num_values);
    return grad_squares.mul(upcast.pow(1).mul(2));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> rms_norm_forward(const at::Tensor& input, std::int64_t num_dims,
                                                    const std::optional<at::Tensor>& weight,
                                                    std::optional<double> eps) {
    const at::Tensor upcast = in_sum_type(input);
    const at::Tensor mean = upcast.pow(2).mean(normalized_dims(input, num_dims), true);
    at::Tensor rstd = (mean + eps.value_or(default_eps(upcast))).rsqrt();
    at::Tensor result = upcast.mul(rstd);
    if (weight.has_value()) result = result.mul(*weight);
    return {result.to(input.scalar_type()), rstd};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& grad,
                                                     const at::Tensor& input, std::int64_t num_dims,
                                                     const at::Tensor& rstd,
                                                     const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted) {
    const at::Tensor upcast = in_sum_type(input);
    const at::Tensor grad_result = grad.to(upcast.scalar_type());
    const std::vector<std::int64_t> dims = normalized_dims(input, num_dims);
    at::Tensor grad_input, grad_weight;
    if (wanted[0]) {
        const at::Tensor grad_scaled = weight.has_value() ? grad_result.mul(*weight) : grad_result;
        const at::Tensor grad_rstd = grad_scaled.mul(upcast).sum(dims, true);
        const at::Tensor through_scale = grad_through_scale(grad_rstd, rstd, upcast);
        grad_input = grad_scaled.mul(rstd).add(through_scale).to(input.scalar_type());
    }
    if (wanted[1] && weight.has_value()) {
        const at::Tensor product = grad_result.mul(upcast.mul(rstd));
        const std::vector<std::int64_t> batch = batch_dims(input, num_dims);
        grad_weight = (batch.empty() ? product : product.sum(batch)).to(weight->scalar_type());
    }
    return {grad_input, grad_weight};
}

}  // namespace trnscope::sim
