#include "gloo_calls.h"

namespace trnscope::sim {
namespace {

std::vector<std::int64_t> sizes_of(const Tensors& tensors) {
    std::vector<std::int64_t> sizes;
    for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
    return sizes;
}

}  // namespace

void divide(Tensors& tensors, int size) {
    for (at::Tensor& tensor : tensors) tensor.div_(size);
}

at::Tensor joined(const Tensors& tensors) {
    Tensors flat;
    for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape(-1));
    return at::cat(flat);
}

void gather_into(c10d::Backend& gloo, at::Tensor& output, at::Tensor& input,
                 const c10d::AllgatherOptions& options) {
    Tensors parts;
    for (const at::Tensor& part : output.view(-1).chunk(gloo.getSize())) parts.push_back(part);
    std::vector<Tensors> lists{parts};
    Tensors inputs{input.contiguous().view(-1)};
    gloo.allgather(lists, inputs, options)->wait();
}

void reduce_and_keep(c10d::Backend& gloo, at::Tensor& output, const at::Tensor& all,
                     const c10d::ReduceScatterOptions& options) {
    c10d::AllreduceOptions plain;
    plain.reduceOp = options.reduceOp;
    plain.timeout = options.timeout;
    const bool is_average = replace_average(plain);
    Tensors one{all.view(-1)};
    gloo.allreduce(one, plain)->wait();
    if (is_average) divide(one, gloo.getSize());
    output.view(-1).copy_(one[0].chunk(gloo.getSize())[gloo.getRank()]);
}

void exchange(c10d::Backend& gloo, Tensors& outputs, const Tensors& inputs,
              const c10d::AllToAllOptions& options) {
    const std::vector<std::int64_t> sizes = sizes_of(outputs);
    at::Tensor sent = joined(inputs), received = joined(outputs);
    std::vector<std::int64_t> from = sizes, to = sizes_of(inputs);  // gloo moves them away
    gloo.alltoall_base(received, sent, from, to, options)->wait();
    const Tensors parts = received.split_with_sizes(sizes);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        outputs[i].copy_(parts[i].view(outputs[i].sizes()));
    }
}

}  // namespace trnscope::sim
