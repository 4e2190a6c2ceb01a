// What torch's generic code asks of an accelerator.

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "allocator.h"
#include "device.h"
#include "generator.h"
#include "host_allocator.h"
#include "settings.h"

namespace trnscope::sim {
namespace {

struct NeuronHooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return !settings().in_bad_fork; }
    bool hasPrimaryContext(c10::DeviceIndex /*core*/) const override { return true; }
    void init() const override {
        TORCH_CHECK(!settings().in_bad_fork,
                    "Cannot re-initialize neuron in a forked process; to use it in a subprocess, "
                    "use the 'spawn' start method");
    }
    c10::DeviceIndex deviceCount() const override {
        return static_cast<c10::DeviceIndex>(num_cores());
    }
    void setCurrentDevice(c10::DeviceIndex core) const override { set_current_core(core); }
    c10::DeviceIndex getCurrentDevice() const override {
        return static_cast<c10::DeviceIndex>(current_core());
    }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex core) const override {
        const c10::DeviceIndex before = getCurrentDevice();
        if (core >= 0) set_current_core(core);
        return before;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex core) const override {
        return exchangeDevice(core);
    }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex core) const override {
        return default_generator(core);
    }
    at::Generator getNewGenerator(c10::DeviceIndex core) const override {
        return new_generator(core < 0 ? current_core() : core);
    }
    at::Device getDeviceFromPtr(void* /*data*/) const override {
        return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(current_core())};
    }
    bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
    at::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }
    void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
        resize(*storage.unsafeGetStorageImpl(), static_cast<std::int64_t>(bytes));
    }
};

const bool is_registered = [] {
    at::RegisterPrivateUse1HooksInterface(new NeuronHooks());
    return true;
}();

}  // namespace
}  // namespace trnscope::sim
