// The device in torch's older profiler, torch.autograd.profiler.profile(use_device="neuron"): a
// table without rows of its own. An event is a place in the virtual time of the current stream.

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "timeline.h"

namespace trnscope::sim {
namespace {

constexpr float kNsPerUs = 1000.0F;

std::int64_t time_of(const torch::profiler::impl::ProfilerVoidEventStub* event) {
    return *static_cast<const std::int64_t*>(event->get());
}

struct Stubs final : torch::profiler::impl::ProfilerStubs {
    void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event,
                std::int64_t* cpu_ns) const override {
        const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
        const c10::Device current = guard.getDevice();
        const std::int64_t time_ns =
            Timeline::instance().record_event(current.index(), guard.getStream(current).id());
        if (device != nullptr) *device = current.index();
        *event = std::make_shared<std::int64_t>(time_ns);
        if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
    }
    float elapsed(const torch::profiler::impl::ProfilerVoidEventStub* from,
                  const torch::profiler::impl::ProfilerVoidEventStub* to) const override {
        return static_cast<float>(time_of(to) - time_of(from)) / kNsPerUs;
    }
    void mark(const char* /*name*/) const override {}
    void rangePush(const char* /*name*/) const override {}
    void rangePop() const override {}
    bool enabled() const override { return true; }
    void onEachDevice(std::function<void(int)> function) const override {
        const int cores = Timeline::instance().num_cores();
        for (int core = 0; core < cores; ++core) function(core);
    }
    void synchronize() const override {}
};

struct Registration {
    Registration() { torch::profiler::impl::registerPrivateUse1Methods(new Stubs()); }
};
const Registration registration;

}  // namespace
}  // namespace trnscope::sim
