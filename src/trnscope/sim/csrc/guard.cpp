// Devices, streams and events as torch asks for them.

#include "device.h"
#include "torch_headers.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

struct Event {
    std::int64_t time_ns = 0;
    std::int32_t core = 0;
};

Event& to_event(void* event) {
    return *static_cast<Event*>(event);
}

c10::Device device_of(std::int32_t core) {
    return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(core)};
}

c10::Stream stream_of(c10::Device device, std::int64_t id) {
    return c10::Stream(c10::Stream::UNSAFE, device, id);
}

c10::Device with_index(c10::Device device) {
    return device.has_index() ? device : device_of(current_core());
}

struct NeuronGuard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return c10::kPrivateUse1; }
    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::Device before = getDevice();
        setDevice(device);
        return before;
    }
    c10::Device getDevice() const override { return device_of(current_core()); }
    void setDevice(c10::Device device) const override {
        if (device.has_index()) set_current_core(device.index());
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        if (device.has_index() && device.index() < num_cores()) set_current_core(device.index());
    }
    c10::DeviceIndex deviceCount() const noexcept override {
        return static_cast<c10::DeviceIndex>(num_cores());
    }
    c10::DeviceCapability getDeviceCapability(c10::Device /*device*/) const override { return {}; }

    c10::Stream getStream(c10::Device device) const override {
        const c10::Device indexed = with_index(device);
        return stream_of(indexed, current_stream(indexed.index()));
    }
    c10::Stream getDefaultStream(c10::Device device) const override {
        return stream_of(with_index(device), 0);
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*is_urgent*/) const override {
        return getNewStream(device);
    }
    c10::Stream getNewStream(c10::Device device, int /*priority*/ = 0) const override {
        return stream_of(with_index(device), new_stream());
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        const c10::Stream before = getStream(stream.device());
        set_current_stream(stream.device_index(), stream.id());
        return before;
    }
    void* getStreamNativeHandle(const c10::Stream stream) const override {
        return reinterpret_cast<void*>(stream.id());
    }
    bool queryStream(const c10::Stream& stream) const override {
        return Timeline::instance().query_stream(stream.device_index(), stream.id());
    }
    void synchronizeStream(const c10::Stream& stream) const override {
        synchronize_stream(stream.device_index(), stream.id(), WaitKind::kStream);
    }
    void synchronizeDevice(const c10::DeviceIndex core) const override { synchronize_core(core); }

    void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*index*/,
                const c10::EventFlag /*flag*/) const override {
        if (*event == nullptr) *event = new Event();
        Event& recorded = to_event(*event);
        recorded.core = stream.device_index();
        recorded.time_ns = Timeline::instance().record_event(recorded.core, stream.id());
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (event == nullptr) return;
        Timeline::instance().block_stream(stream.device_index(), stream.id(),
                                          to_event(event).time_ns);
    }
    bool queryEvent(void* event) const override {
        return event == nullptr || Timeline::instance().query_time(to_event(event).time_ns);
    }
    void synchronizeEvent(void* event) const override {
        if (event == nullptr) return;
        const Event& recorded = to_event(event);
        Timeline::instance().wait_time(recorded.core, recorded.time_ns, waiter_here());
        Worker::instance().drain();
    }
    double elapsedTime(void* start, void* end, const c10::DeviceIndex /*index*/) const override {
        TORCH_CHECK(start != nullptr && end != nullptr,
                    "neuron: both events must be recorded before their distance is known");
        return static_cast<double>(to_event(end).time_ns - to_event(start).time_ns) / 1e6;
    }
    void destroyEvent(void* event, const c10::DeviceIndex /*index*/) const noexcept override {
        delete static_cast<Event*>(event);
    }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, NeuronGuard)

}  // namespace
}  // namespace trnscope::sim
