#include "process_group.h"

#include <torch/csrc/utils/pybind.h>

#include <numeric>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include "collectives.h"
#include "convert.h"
#include "describe.h"
#include "device.h"
#include "gloo_calls.h"
#include "launch.h"
#include "sends.h"
#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

using at::Tensor;
using c10d::Work;
using WorkPtr = c10::intrusive_ptr<Work>;
using Gloo = c10::intrusive_ptr<c10d::Backend>;
using Splits = std::vector<std::int64_t>;
using Source = std::shared_ptr<std::atomic<int>>;

c10::Device device_of(std::int32_t core) {
    return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(core)};
}

// A collective that was launched. Waiting for it holds back the current stream, not the host.
class NeuronWork final : public Work {
  public:
    NeuronWork(int rank, c10d::OpType type, std::int32_t core, std::int64_t stream, Tensors outputs,
               Source source)
        : Work(rank, type), core_(core), outputs_(std::move(outputs)), source_(std::move(source)) {
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
    // Who sent what was received from any rank: known once it is there.
    int sourceRank() const override {
        TORCH_CHECK(source_ != nullptr, "only a receive from any rank has a source to tell");
        Worker::instance().drain();
        return *source_;
    }
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
    Source source_;
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

std::int64_t elements_of(const Tensors& tensors) {
    std::int64_t elements = 0;
    for (const Tensor& tensor : tensors) elements += tensor.numel();
    return elements;
}

std::int64_t bytes_of(const Tensors& tensors) {
    std::int64_t bytes = 0;
    for (const Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
    return bytes;
}

// The distance between one rank and the next; -1: it is not always the same.
int stride_of(const Splits& ranks) {
    const std::int64_t stride = ranks.size() < 2 ? 1 : ranks[1] - ranks[0];
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        if (ranks[i] - ranks[i - 1] != stride) return -1;
    }
    return stride > 0 ? static_cast<int>(stride) : -1;
}

// One call of torch.distributed's: what it costs as, and what a profile says of it.
struct Collective {
    const char* kind;  // of the cost model
    const char* call;  // as NCCL's process group names it
    c10d::OpType type;
    std::int64_t bytes;                       // of the whole buffer
    std::optional<std::int64_t> in_elements;  // where they are not those of the tensors passed
    std::optional<std::int64_t> out_elements;
    Splits in_splits;
    Splits out_splits;
    std::optional<int> source = {};  // of a message from one rank to another
    std::optional<int> destination = {};

    bool is_between_two() const { return source.has_value() || destination.has_value(); }
    // The other rank of a message, as NCCL's process group tells it; -1: any.
    int told_rank(int own) const {
        if (!is_between_two()) return own;
        return (source == own ? destination : source).value_or(-1);
    }
};

// The numbers travel by gloo, on the worker; the time is that of the collective model.
class NeuronBackend final : public c10d::Backend {
  public:
    // `ranks`: those of the group, in the whole job.
    NeuronBackend(Gloo gloo, Splits ranks)
        : Backend(gloo->getRank(), gloo->getSize()),
          gloo_(std::move(gloo)),
          ranks_(std::move(ranks)),
          queue_(new_stream()) {
        if (!ranks_.empty()) return;
        ranks_.resize(static_cast<std::size_t>(getSize()));
        std::iota(ranks_.begin(), ranks_.end(), 0);
    }

    const std::string getBackendName() const override { return "neuron"; }
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

    WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
        return run({"broadcast", "broadcast", c10d::OpType::BROADCAST, bytes_of(tensors)}, tensors,
                   tensors, [options](c10d::Backend& gloo, Tensors& twins, Tensors&) {
                       gloo.broadcast(twins, options)->wait();
                   });
    }
    WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
        auto plain = options;
        const bool is_average = replace_average(plain);
        return run({"all_reduce", "allreduce", c10d::OpType::ALLREDUCE, bytes_of(tensors)}, tensors,
                   tensors, [plain, is_average](c10d::Backend& gloo, Tensors& twins, Tensors&) {
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
        return run({"all_reduce", "allreduce_coalesced", c10d::OpType::ALLREDUCE_COALESCED,
                    bytes_of(tensors)},
                   tensors, tensors,
                   [plain, is_average](c10d::Backend& gloo, Tensors& twins, Tensors&) {
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
        return run({"reduce", "reduce", c10d::OpType::REDUCE, bytes_of(tensors)}, tensors, tensors,
                   [plain, is_average](c10d::Backend& gloo, Tensors& twins, Tensors&) {
                       gloo.reduce(twins, plain)->wait();
                       if (is_average && gloo.getRank() == plain.rootRank) {
                           divide(twins, gloo.getSize());
                       }
                   });
    }
    WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                      const c10d::AllgatherOptions& options) override {
        return run({"all_gather", "all_gather", c10d::OpType::ALLGATHER, bytes_of(outputs.at(0))},
                   outputs.at(0), inputs,
                   [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       std::vector<Tensors> lists{out};
                       gloo.allgather(lists, in, options)->wait();
                   });
    }
    WorkPtr _allgather_base(Tensor& output, Tensor& input,
                            const c10d::AllgatherOptions& options) override {
        return run(
            {"all_gather", "_allgather_base", c10d::OpType::_ALLGATHER_BASE, bytes_of({output})},
            {output}, {input}, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                gather_into(gloo, out[0], in[0], options);
            });
    }
    WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) override {
        return run({"all_gather", "allgather_into_tensor_coalesced", c10d::OpType::COALESCED,
                    bytes_of(outputs)},
                   outputs, inputs, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       for (std::size_t i = 0; i < out.size(); ++i) {
                           gather_into(gloo, out[i], in[i], options);
                       }
                   });
    }
    WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                   const c10d::GatherOptions& options) override {
        const Tensors out = outputs.empty() ? Tensors{} : outputs[0];
        return run({"all_gather", "gather", c10d::OpType::GATHER, bytes_of(inputs) * getSize(),
                    elements_of(inputs), elements_of(inputs) * getSize()},
                   out, inputs, [options](c10d::Backend& gloo, Tensors& twins, Tensors& in) {
                       std::vector<Tensors> lists;
                       if (!twins.empty()) lists.push_back(twins);
                       gloo.gather(lists, in, options)->wait();
                   });
    }
    WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                    const c10d::ScatterOptions& options) override {
        const Tensors in = inputs.empty() ? Tensors{} : inputs[0];
        return run({"broadcast", "scatter", c10d::OpType::SCATTER, bytes_of(outputs) * getSize(),
                    elements_of(outputs) * getSize(), elements_of(outputs)},
                   outputs, in, [options](c10d::Backend& gloo, Tensors& out, Tensors& twins) {
                       std::vector<Tensors> lists;
                       if (!twins.empty()) lists.push_back(twins);
                       gloo.scatter(out, lists, options)->wait();
                   });
    }
    WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                           const c10d::ReduceScatterOptions& options) override {
        return run({"reduce_scatter", "reduce_scatter", c10d::OpType::REDUCE_SCATTER,
                    bytes_of(inputs.at(0))},
                   outputs, inputs.at(0),
                   [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       reduce_and_keep(gloo, out[0], joined(in), options);
                   });
    }
    WorkPtr _reduce_scatter_base(Tensor& output, Tensor& input,
                                 const c10d::ReduceScatterOptions& options) override {
        return run({"reduce_scatter", "_reduce_scatter_base", c10d::OpType::_REDUCE_SCATTER_BASE,
                    bytes_of({input})},
                   {output}, {input}, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       reduce_and_keep(gloo, out[0], in[0].clone(), options);
                   });
    }
    WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                            const c10d::ReduceScatterOptions& options) override {
        return run({"reduce_scatter", "reduce_scatter_tensor_coalesced", c10d::OpType::COALESCED,
                    bytes_of(inputs)},
                   outputs, inputs, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       for (std::size_t i = 0; i < out.size(); ++i) {
                           reduce_and_keep(gloo, out[i], in[i].clone(), options);
                       }
                   });
    }
    WorkPtr alltoall_base(Tensor& output, Tensor& input, Splits& output_splits,
                          Splits& input_splits, const c10d::AllToAllOptions& options) override {
        const bool is_even = output_splits.empty() && input_splits.empty();
        return run(
            {"all_to_all", is_even ? "all_to_all" : "all_to_allv", c10d::OpType::ALLTOALL_BASE,
             bytes_of({input}), input.numel(), output.numel(), input_splits, output_splits},
            {output}, {input},
            [options, output_splits, input_splits](c10d::Backend& gloo, Tensors& out,
                                                   Tensors& in) mutable {
                gloo.alltoall_base(out[0], in[0], output_splits, input_splits, options)->wait();
            });
    }
    WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                     const c10d::AllToAllOptions& options) override {
        return run({"all_to_all", "all_to_all", c10d::OpType::ALLTOALL, bytes_of(inputs)}, outputs,
                   inputs, [options](c10d::Backend& gloo, Tensors& out, Tensors& in) {
                       exchange(gloo, out, in, options);
                   });
    }
    WorkPtr send(Tensors& tensors, int target, int tag) override {
        Collective message = between_two("send", c10d::OpType::SEND, tensors);
        message.source = getRank();
        message.destination = target;
        return run(message, {}, tensors,
                   [gloo = gloo_, target, tag](c10d::Backend&, Tensors&, Tensors& in) {
                       Sends::instance().begin(gloo, in.at(0).clone(), target, tag);
                   });
    }
    WorkPtr recv(Tensors& tensors, int source, int tag) override {
        Collective message = between_two("recv", c10d::OpType::RECV, tensors);
        message.source = source;
        message.destination = getRank();
        return run(message, tensors, {},
                   [source, tag](c10d::Backend& gloo, Tensors& out, Tensors&) {
                       gloo.recv(out, source, tag)->wait();
                   });
    }
    WorkPtr recvAnysource(Tensors& tensors, int tag) override {
        TORCH_CHECK(settings().numerics,
                    "a receive from any rank needs the numbers, which this device does not "
                    "compute; name the source: torch.distributed.recv(tensor, src)");
        Collective message = between_two("recv", c10d::OpType::RECVANYSOURCE, tensors);
        message.destination = getRank();
        auto from = std::make_shared<std::atomic<int>>(-1);
        return run(
            message, tensors, {},
            [from, tag](c10d::Backend& gloo, Tensors& out, Tensors&) {
                const WorkPtr work = gloo.recvAnysource(out, tag);
                work->wait();
                *from = work->sourceRank();
            },
            from);
    }
    WorkPtr barrier(const c10d::BarrierOptions& options) override {
        WorkPtr work = run(
            {"all_reduce", "barrier", c10d::OpType::BARRIER, 4}, {}, {},
            [options](c10d::Backend& gloo, Tensors&, Tensors&) { gloo.barrier(options)->wait(); });
        synchronize_stream(current_core(), queue_, WaitKind::kStream);
        return work;
    }

  private:
    static Collective between_two(const char* kind, c10d::OpType type, const Tensors& tensors) {
        const std::int64_t elements = elements_of(tensors);
        return {kind, kind, type, bytes_of(tensors), elements, elements, {}, {}};
    }

    CollectiveInfo info_of(const Collective& call, const Tensors& outputs, const Tensors& inputs,
                           c10::ScalarType type) const {
        CollectiveInfo info;
        info.call = call.call;
        info.in_elements = call.in_elements.value_or(elements_of(inputs));
        info.out_elements = call.out_elements.value_or(elements_of(outputs));
        info.in_splits = call.in_splits;
        info.out_splits = call.out_splits;
        info.dtype = c10::toString(type);
        info.group_name = getGroupUid();
        info.group_description = getGroupDesc();
        info.ranks = ranks_;
        info.rank = getRank();
        info.source = call.source.value_or(-1);
        info.destination = call.destination.value_or(-1);
        return info;
    }

    template <typename Call>
    WorkPtr run(const Collective& collective, const Tensors& outputs, const Tensors& inputs,
                Call call, Source source = nullptr) {
        ++sequence_;
        const Tensors& any = outputs.empty() ? inputs : outputs;
        const c10::ScalarType type = any.empty() ? c10::kFloat : any[0].scalar_type();
        const CollectiveInfo info =
            info_of(collective, outputs, inputs, any.empty() ? c10::kByte : type);
        RECORD_PARAM_COMMS_DATA(
            std::make_tuple(static_cast<std::int64_t>(sequence_), collective.is_between_two()),
            std::make_tuple(info.group_name, info.group_description), inputs, outputs,
            collective.told_rank(getRank()), collective.call, info.in_elements, info.out_elements,
            any.empty() ? c10::kByte : type, info.in_splits, info.out_splits,
            static_cast<int>(ranks_.front()), stride_of(ranks_), getSize());
        const std::int32_t core = any.empty() ? current_core() : any[0].device().index();
        if (!is_in_graph()) enqueue(collective, info, core, type);
        if (settings().numerics || any.empty())
            submit(collective.kind, std::move(call), outputs, inputs);
        return c10::make_intrusive<NeuronWork>(getRank(), collective.type, core, queue_, outputs,
                                               std::move(source));
    }

    // In virtual time. A graph's collectives are part of its cost.
    void enqueue(const Collective& collective, const CollectiveInfo& info, std::int32_t core,
                 c10::ScalarType type) {
        Timeline& timeline = Timeline::instance();
        timeline.block_stream(core, queue_, timeline.record_event(core, current_stream(core)));
        const CollectiveScope scope({Collectives::instance().number_of(info), sequence_});
        launch_on(describe_collective({collective.kind, collective.bytes, getSize(), type}), core,
                  queue_, real_now_ns());
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
    Splits ranks_;
    std::int64_t queue_;  // the stream of this group's collectives
    std::uint64_t sequence_ = 0;
};

}  // namespace

void bind_process_group(pybind11::module_& module) {
    namespace py = pybind11;
    if (py::hasattr(module, "ProcessGroupNeuron")) return;
    py::class_<NeuronBackend, c10::intrusive_ptr<NeuronBackend>, c10d::Backend>(
        module, "ProcessGroupNeuron")
        .def(py::init<Gloo, Splits>());
}

}  // namespace trnscope::sim
