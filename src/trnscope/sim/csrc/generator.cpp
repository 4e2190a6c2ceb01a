#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include "device.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

// Kernels draw on the worker, so whoever looks at the state waits for it first.
class NeuronGenerator final : public c10::GeneratorImpl {
  public:
    NeuronGenerator(c10::Device device, at::Generator inner)
        : c10::GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
          inner_(std::move(inner)) {}

    void set_current_seed(std::uint64_t seed) override { settled().set_current_seed(seed); }
    void set_offset(std::uint64_t offset) override { settled().set_offset(offset); }
    std::uint64_t get_offset() const override { return settled().get_offset(); }
    std::uint64_t current_seed() const override { return settled().current_seed(); }
    std::uint64_t seed() override { return settled().seed(); }
    void set_state(const c10::TensorImpl& state) override {
        settled().unsafeGetGeneratorImpl()->set_state(state);
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
        return settled().unsafeGetGeneratorImpl()->get_state();
    }
    const at::Generator& inner() const { return inner_; }

  private:
    at::Generator& settled() const {
        Worker::instance().drain();
        return inner_;
    }
    NeuronGenerator* clone_impl() const override {
        return new NeuronGenerator(device_, settled().clone());
    }

    mutable at::Generator inner_;
};

}  // namespace

at::Generator new_generator(std::int32_t core) {
    const c10::Device device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(core));
    return at::make_generator<NeuronGenerator>(device, at::detail::createCPUGenerator());
}

const at::Generator& default_generator(std::int32_t core) {
    static auto* generators = new std::vector<at::Generator>();
    const std::int32_t wanted = core < 0 ? current_core() : core;
    TORCH_CHECK(wanted < num_cores(), "neuron:", wanted, " does not exist");
    if (generators->capacity() == 0) generators->reserve(256);  // references stay valid
    while (static_cast<std::int32_t>(generators->size()) <= wanted) {
        generators->push_back(new_generator(static_cast<std::int32_t>(generators->size())));
    }
    return (*generators)[wanted];
}

at::Generator inner_generator(const at::Generator& generator) {
    auto* neuron = dynamic_cast<NeuronGenerator*>(generator.unsafeGetGeneratorImpl());
    TORCH_CHECK(neuron != nullptr, "Expected a 'neuron' device type for generator but found '",
                generator.device().type(), "'");
    return neuron->inner();
}

}  // namespace trnscope::sim
