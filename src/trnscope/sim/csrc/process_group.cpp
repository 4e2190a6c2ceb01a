#include "process_group.h"

#include <torch/csrc/utils/pybind.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "convert.h"
#include "describe.h"
#include "device.h"
#include "launch.h"
#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

using at::Tensor;
using c10d::Work;
using Tensors = std::vector<Tensor>;
using WorkPtr = c10::intrusive_ptr<Work>;
using Gloo = c10::intrusive_ptr<c10d::Backend>;

c10::Device device_of(std::int32_t core) {
    return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(core)};
}

// A collective that was launched. Waiting for it holds back the current stream, not the host.
class NeuronWork final : public Work {
  public:
    NeuronWork(int rank, c10d::OpType type, std::int32_t core, std::int64_t stream, Tensors outputs)
        : Work(rank, type), core_(core), outputs_(std::move(outputs)) {
        end_ns_ = Timeline::instance().record_event(core, stream);
        future_ =
            c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                     std::vector<c10::Device>{device_of(core)});
        const std::int64_t before = current_stream(core);
        set_current_stream(core, stream);  // the future's event marks the collective's end
        future_->markCompleted(c10::IValue(outputs_));
        set_current_stream(core, before);
    }
    bool isCompleted() override { return true; }
    bool isSuccess() const override { return true; }
    Tensors result() override { return outputs_; }
    void synchronize() override {
        Timeline::instance().block_stream(core_, current_stream(core_), end_ns_);
    }
    bool wait(std::chrono::milliseconds /*timeout*/) override {
        synchronize();
        return true;
    }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  private:
    std::int32_t core_;
    std::int64_t end_ns_ = 0;
    Tensors outputs_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

Tensors to_twins(const Tensors& tensors) {
    Tensors twins;
    for (const Tensor& tensor : tensors) twins.push_back(to_twin(tensor));
    return twins;
}

void materialize_all(const Tensors& twins) {
    for (const Tensor& twin : twins) materialize_twin(twin);
}

std::int64_t bytes_of(const Tensors& tensors) {
    std::int64_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
    return bytes;
}

// gloo knows no average: the sum, and then the quotient.
template <typename Options>
bool replace_average(Options& options) {
    if (options.reduceOp != c10d::ReduceOp::AVG) return false;
    options.reduceOp = c10d::ReduceOp::SUM;
    return true;
}

// The numbers travel by gloo, on the worker; the time is that of the collective model.
class NeuronBackend final : public c10d::Backend {
  public:
    explicit NeuronBackend(Gloo gloo)
        : Backend(gloo->getRank(), gloo->getSize()), gloo_(std::move(gloo)), queue_(new_stream()) {}

    const std::string getBackendName() const override { return "neuron"; }
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

    WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
        return run({"broadcast", c10d::OpType::BROADCAST, bytes_of(tensors)}, tensors, tensors,
                   [options](c10d::Backend& gloo, Tensors& twins, Tensors&) {
                       gloo.broadcast(twins, options)->wait();
                   });
    }
    WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
        auto plain = options;
        const bool is_average = replace_average(plain);
        return run({"all_reduce", c10d::OpType::ALLREDUCE, bytes_of(tensors)}, tensors, tensors,
                   [plain, is_average](c10d::Backend& gloo, Tensors& twins, Tensors&) {
                       gloo.allreduce(twins, plain)->wait();
                       if (is_average) divide(twins, gloo.getSize());
                   });
    }
    WorkPtr allreduce_coalesced(Tensors& tensors,
                                const c10d::AllreduceCoalescedOptions& options) override {
        c10d::AllreduceOptions plain;
        plain.reduceOp = options.reduceOp;
        plain.timeout = options.timeout;
        const bool is_average = replace_average(plain);
        return run({"all_reduce", c10d::OpType::ALLREDUCE_COALESCED, bytes_of(tensors)}, tensors,
                   tensors, [plain, is_average](c10d::Backend& gloo, Tensors& twins, Tensors&) {
                       for (Tensor& twin : twins) {
                           Tensors one{twin};
                           gloo.allreduce(one, plain)->wait();
                       }
                       if (is_average) divide(twins, gloo.getSize());
                   });
    }
    WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
        auto plain = options;
        const bool is_average = replace_average(plain);
        return run({"reduce", c10d::OpType::REDUCE, bytes_of(tensors)}, tensors, tensors,
                   [plain, is_average](c10d::Backend& gloo, Tensors& twins, Tensors&) {
                       gloo.reduce(twins, plain)->wait();
                       if (is_average && gloo.getRank() == plain.rootRank) {
                           divide(twins, gloo.getSize());
                       }
                   });
    }
    WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) override {
        return run({"all_gather", c10d::OpType::ALLGATHER, bytes_of(outputs.at(0))}, outputs.at(0),
                   inputs, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       std::vector<Tensors> lists{out};
                       gloo.allgather(lists, in, options)->wait();
                   });
    }
    WorkPtr _allgather_base(Tensor& output, Tensor& input,
                            const c10d::AllgatherOptions& options) override {
        return run({"all_gather", c10d::OpType::_ALLGATHER_BASE, bytes_of({output})}, {output},
                   {input}, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       gather_into(gloo, out[0], in[0], options);
                   });
    }
    WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override {
        return run({"all_gather", c10d::OpType::COALESCED, bytes_of(outputs)}, outputs, inputs,
                   [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       for (std::size_t i = 0; i < out.size(); ++i) {
                           gather_into(gloo, out[i], in[i], options);
                       }
                   });
    }
    WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                   const c10d::GatherOptions& options) override {
        const Tensors out = outputs.empty() ? Tensors{} : outputs[0];
        return run({"all_gather", c10d::OpType::GATHER, bytes_of(inputs) * getSize()}, out, inputs,
                   [options](c10d::Backend& gloo, Tensors& twins, Tensors& in) {
                       std::vector<Tensors> lists;
                       if (!twins.empty()) lists.push_back(twins);
                       gloo.gather(lists, in, options)->wait();
                   });
    }
    WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                    const c10d::ScatterOptions& options) override {
        const Tensors in = inputs.empty() ? Tensors{} : inputs[0];
        return run({"broadcast", c10d::OpType::SCATTER, bytes_of(outputs) * getSize()}, outputs, in,
                   [options](c10d::Backend& gloo, Tensors& out, Tensors& twins) {
                       std::vector<Tensors> lists;
                       if (!twins.empty()) lists.push_back(twins);
                       gloo.scatter(out, lists, options)->wait();
                   });
    }
    WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                           const c10d::ReduceScatterOptions& options) override {
        return run({"reduce_scatter", c10d::OpType::REDUCE_SCATTER, bytes_of(inputs.at(0))},
                   outputs, inputs.at(0),
                   [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       reduce_and_keep(gloo, out[0], at::cat(flat(in)), options);
                   });
    }
    WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override {
        return run({"reduce_scatter", c10d::OpType::_REDUCE_SCATTER_BASE, bytes_of({input})},
                   {output}, {input}, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       reduce_and_keep(gloo, out[0], in[0].clone(), options);
                   });
    }
    WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override {
        return run({"reduce_scatter", c10d::OpType::COALESCED, bytes_of(inputs)}, outputs, inputs,
                   [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       for (std::size_t i = 0; i < out.size(); ++i) {
                           reduce_and_keep(gloo, out[i], in[i].clone(), options);
                       }
                   });
    }
    WorkPtr alltoall_base(Tensor& output, Tensor& input, std::vector<std::int64_t>& output_splits,
                          std::vector<std::int64_t>& input_splits,
                          const c10d::AllToAllOptions& options) override {
        return run(
            {"all_to_all", c10d::OpType::ALLTOALL_BASE, bytes_of({input})}, {output}, {input},
            [options, output_splits, input_splits](c10d::Backend& gloo, Tensors& out,
                                                   Tensors& in) mutable {
                gloo.alltoall_base(out[0], in[0], output_splits, input_splits, options)->wait();
            });
    }
    WorkPtr send(Tensors& tensors, int target, int tag) override {
        return run({"send", c10d::OpType::SEND, bytes_of(tensors)}, {}, tensors,
                   [target, tag](c10d::Backend& gloo, Tensors&, Tensors& in) {
                       gloo.send(in, target, tag)->wait();
                   });
    }
    WorkPtr recv(Tensors& tensors, int source, int tag) override {
        return run({"recv", c10d::OpType::RECV, bytes_of(tensors)}, tensors, {},
                   [source, tag](c10d::Backend& gloo, Tensors& out, Tensors&) {
                       gloo.recv(out, source, tag)->wait();
                   });
    }
    WorkPtr barrier(const c10d::BarrierOptions& options) override {
        WorkPtr work = run(
            {"all_reduce", c10d::OpType::BARRIER, 4}, {}, {},
            [options](c10d::Backend& gloo, Tensors&, Tensors&) { gloo.barrier(options)->wait(); });
        synchronize_stream(current_core(), queue_, WaitKind::kStream);
        return work;
    }

  private:
    struct Collective {
        const char* kind;
        c10d::OpType type;
        std::int64_t bytes;
    };

    static void divide(Tensors& twins, int size) {
        for (Tensor& twin : twins) twin.div_(size);
    }
    static Tensors flat(const Tensors& tensors) {
        Tensors result;
        for (const Tensor& tensor : tensors) result.push_back(tensor.reshape(-1));
        return result;
    }
    static void gather_into(c10d::Backend& gloo, Tensor& output, Tensor& input,
                            const c10d::AllgatherOptions& options) {
        Tensors parts;
        for (const Tensor& part : output.view(-1).chunk(gloo.getSize())) parts.push_back(part);
        std::vector<Tensors> lists{parts};
        Tensors inputs{input.contiguous().view(-1)};
        gloo.allgather(lists, inputs, options)->wait();
    }
    // `all` is this backend's own copy, which the reduction overwrites.
    static void reduce_and_keep(c10d::Backend& gloo, Tensor& output, const Tensor& all,
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

    template <typename Call>
    WorkPtr run(const Collective& collective, const Tensors& outputs, const Tensors& inputs,
                Call call) {
        ++sequence_;
        const Tensors& any = outputs.empty() ? inputs : outputs;
        const std::int32_t core = any.empty() ? current_core() : any[0].device().index();
        const c10::ScalarType type = any.empty() ? c10::kFloat : any[0].scalar_type();
        Timeline& timeline = Timeline::instance();
        timeline.block_stream(core, queue_, timeline.record_event(core, current_stream(core)));
        launch_on(describe_collective({collective.kind, collective.bytes, getSize(), type}), core,
                  queue_, real_now_ns());
        if (settings().numerics || any.empty())
            submit(collective.kind, std::move(call), outputs, inputs);
        return c10::make_intrusive<NeuronWork>(getRank(), collective.type, core, queue_, outputs);
    }

    template <typename Call>
    void submit(const char* kind, Call call, const Tensors& outputs, const Tensors& inputs) {
        Worker::instance().submit(kind, [gloo = gloo_, call = std::move(call),
                                         out = to_twins(outputs), in = to_twins(inputs)]() mutable {
            materialize_all(out);
            materialize_all(in);
            call(*gloo, out, in);
        });
    }

    Gloo gloo_;
    std::int64_t queue_;  // the stream of this group's collectives
    std::uint64_t sequence_ = 0;
};

}  // namespace

void bind_process_group(pybind11::module_& module) {
    namespace py = pybind11;
    if (py::hasattr(module, "ProcessGroupNeuron")) return;
    py::class_<NeuronBackend, c10::intrusive_ptr<NeuronBackend>, c10d::Backend>(
        module, "ProcessGroupNeuron")
        .def(py::init<Gloo>());
}

}  // namespace trnscope::sim
