#pragma once
// Collectives on CPU tensors that gloo lacks, made of those that it has. Called on the worker.

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "torch_headers.h"

namespace trnscope::sim {

using Tensors = std::vector<at::Tensor>;

void divide(Tensors& tensors, int size);
// gloo knows no average: the sum, and then the quotient. True where that has to be done.
template <typename Options>
bool replace_average(Options& options) {
    if (options.reduceOp != c10d::ReduceOp::AVG) return false;
    options.reduceOp = c10d::ReduceOp::SUM;
    return true;
}

void gather_into(c10d::Backend& gloo, at::Tensor& output, at::Tensor& input,
                 const c10d::AllgatherOptions& options);
// Overwrites `all`.
void reduce_and_keep(c10d::Backend& gloo, at::Tensor& output, const at::Tensor& all,
                     const c10d::ReduceScatterOptions& options);
// One tensor to each rank and from each.
void exchange(c10d::Backend& gloo, Tensors& outputs, const Tensors& inputs,
              const c10d::AllToAllOptions& options);

// All of them as one row of elements.
at::Tensor joined(const Tensors& tensors);

}  // namespace trnscope::sim
