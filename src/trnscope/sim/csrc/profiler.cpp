#include "profiler.h"

#include <GenericTraceActivity.h>
#include <IActivityProfiler.h>
#include <ThreadUtil.h>
#include <c10/util/Exception.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "collectives.h"
#include "profiler_rows.h"

namespace trnscope::sim {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

constexpr std::int64_t kDeviceSort = libkineto::kExceedMaxPid;
const char* const kDriverCall = "kmgr_exec_core";
const char* const kPluginName = "__neuron_profiler__";

struct Shared {
    SignatureName signature_name;
    std::string device_properties;
    std::string simulation = "{}";
    std::optional<Observed> last_observed;
    std::uint64_t num_dropped = 0;
};

Shared& shared() {
    static Shared* shared = new Shared();
    return *shared;
}

struct Recorder {
    explicit Recorder(ProfilerConfig config) : launches(std::move(config)) {}
    ProfiledLaunches launches;
};

// The session that records now. A launch on another thread may still hold it when it ends.
std::mutex recorder_mutex;
std::shared_ptr<Recorder> recorder;
std::atomic<bool> has_recorder{false};

void set_recorder(std::shared_ptr<Recorder> value) {
    std::lock_guard lock(recorder_mutex);
    has_recorder = value != nullptr;
    recorder = std::move(value);
}

std::vector<std::uint64_t>& open_ops() {
    static thread_local std::vector<std::uint64_t> ops;
    return ops;
}

void record_launch(const LaunchRecord& record) {
    if (!has_recorder.load(std::memory_order_relaxed)) return;
    std::shared_ptr<Recorder> target;
    {
        std::lock_guard lock(recorder_mutex);
        target = recorder;
    }
    if (target == nullptr) return;
    const auto op = open_ops().empty() ? 0 : static_cast<std::int32_t>(open_ops().back());
    ProfiledLaunch launch;
    launch.record = record;
    launch.op = op;
    launch.thread = libkineto::systemThreadId();
    launch.collective = current_collective();
    target->launches.add(std::move(launch));
}

struct KindWords {
    ActivityType activity;
    const char* call;
    const char* copy;
};

KindWords words_of(LaunchKind kind) {
    switch (kind) {
        case LaunchKind::kCopyHostToDevice:
            return {ActivityType::GPU_MEMCPY, "nrt_tensor_write", "HtoD"};
        case LaunchKind::kCopyDeviceToHost:
            return {ActivityType::GPU_MEMCPY, "nrt_tensor_read", "DtoH"};
        case LaunchKind::kCopyDeviceToDevice:
            return {ActivityType::GPU_MEMCPY, "nrt_tensor_copy", "DtoD"};
        case LaunchKind::kMemset:
            return {ActivityType::GPU_MEMSET, "nrt_tensor_memset", nullptr};
        case LaunchKind::kCollective:
            return {ActivityType::CONCURRENT_KERNEL, "nrt_cc_schedule", nullptr};
        default:
            return {ActivityType::CONCURRENT_KERNEL, "nrta_execute_schedule", nullptr};
    }
}

class Session final : public libkineto::IActivityProfilerSession {
  public:
    explicit Session(const std::string& config)
        : config_(parse_profiler_config(config)), buffer_(new libkineto::CpuTraceBuffer()) {}

    ~Session() override { end_recording(); }

    void start() override {
        own_ = std::make_shared<Recorder>(config_);
        set_recorder(own_);
        if (config_.is_ours) observed_ = Observer::instance().begin(true, config_.with_stack);
        status_ = libkineto::TraceStatus::RECORDING;
    }

    void stop() override {
        end_recording();
        status_ = libkineto::TraceStatus::PROCESSING;
    }

    std::vector<std::string> errors() override { return {}; }
    void processTrace(libkineto::ActivityLogger& /*logger*/) override {}
    void processTrace(libkineto::ActivityLogger& logger,
                      libkineto::getLinkedActivityCallback linked, std::int64_t start,
                      std::int64_t /*end*/) override {
        if (own_ == nullptr) return;
        const auto launches = own_->launches.take();
        shared().num_dropped = own_->launches.num_dropped();
        for (const ProfiledLaunch& launch : launches) add_rows(launch, linked);
        for (const auto& activity : buffer_->activities) logger.handleActivity(*activity);
        name_streams(logger, launches, start);
    }

    std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return device_info(0); }
    std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
    std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
        return std::move(buffer_);
    }
    void pushCorrelationId(std::uint64_t id) override { open_ops().push_back(id); }
    void popCorrelationId() override {
        if (!open_ops().empty()) open_ops().pop_back();
    }
    std::string getDeviceProperties() override { return shared().device_properties; }
    std::unordered_map<std::string, std::string> getMetadata() override {
        return {{"trnscopeSimulation", shared().simulation}};
    }

  private:
    void end_recording() {
        if (status_ != libkineto::TraceStatus::RECORDING) return;
        status_ = libkineto::TraceStatus::READY;
        set_recorder(nullptr);
        if (observed_ == 0) return;
        shared().last_observed = Observer::instance().end(observed_);
        observed_ = 0;
    }

    static std::unique_ptr<libkineto::DeviceInfo> device_info(std::int32_t core) {
        const std::string label = "NEURON " + std::to_string(core);
        return std::make_unique<libkineto::DeviceInfo>(
            libkineto::DeviceInfo{core, kDeviceSort + core, "python", label + " (simulated)"});
    }

    GenericTraceActivity& add(ActivityType type, const std::string& name, std::int64_t start_ns,
                              std::int64_t end_ns) {
        buffer_->emplace_activity(buffer_->span, type, name);
        GenericTraceActivity& row = *buffer_->activities.back();
        row.startTime = start_ns;
        row.endTime = end_ns;
        return row;
    }

    void add_rows(const ProfiledLaunch& launch,
                  const libkineto::getLinkedActivityCallback& linked) {
        const libkineto::ITraceActivity* op = launch.op == 0 ? nullptr : linked(launch.op);
        const KindWords words = words_of(launch.record.kind);
        GenericTraceActivity& call = add(ActivityType::PRIVATEUSE1_RUNTIME, words.call,
                                         launch.call_start_ns, launch.call_end_ns);
        on_host(call, launch, op);
        call.flow.start = 1;
        call.flow.type = libkineto::kLinkAsyncCpuGpu;
        call.flow.id = static_cast<std::uint32_t>(call.id);
        call.addMetadata("correlation", launch.record.correlation_id);
        if (words.activity == ActivityType::CONCURRENT_KERNEL) {
            GenericTraceActivity& dispatch = add(ActivityType::PRIVATEUSE1_DRIVER, kDriverCall,
                                                 launch.call_end_ns, launch.call_end_ns);
            on_host(dispatch, launch, op);
            dispatch.addMetadata("device", launch.record.core);
            dispatch.addMetadata("framework_stream_id", launch.record.stream);
        }
        add_work(launch, words, op);
    }

    void on_host(GenericTraceActivity& row, const ProfiledLaunch& launch,
                 const libkineto::ITraceActivity* op) {
        row.device = libkineto::processId();
        row.resource = row.threadId = launch.thread;
        row.id = static_cast<std::int32_t>(launch.record.correlation_id);
        row.linked = op;
        add_ids(row, launch);
    }

    void add_work(const ProfiledLaunch& launch, const KindWords& words,
                  const libkineto::ITraceActivity* op) {
        GenericTraceActivity& work = add(words.activity, name_of(launch.record),
                                         launch.device_start_ns, launch.device_end_ns);
        work.device = launch.record.core;
        work.resource = static_cast<std::int32_t>(launch.record.stream);
        work.id = static_cast<std::int32_t>(launch.record.correlation_id);
        work.linked = op;
        work.flow.start = 0;
        work.flow.type = libkineto::kLinkAsyncCpuGpu;
        work.flow.id = static_cast<std::uint32_t>(work.id);
        work.addMetadata("device", launch.record.core);
        work.addMetadata("stream", launch.record.stream);
        work.addMetadata("correlation", launch.record.correlation_id);
        add_ids(work, launch);
        if (words.copy != nullptr) work.addMetadataQuoted("kind", words.copy);
        if (launch.collective.number >= 0) add_collective(work, launch.collective);
        if (words.activity != ActivityType::CONCURRENT_KERNEL) {
            work.addMetadata("bytes", launch.record.bytes);
        }
    }

    // The words of Kineto's rows of NCCL.
    static void add_collective(GenericTraceActivity& row, const CollectiveMark& mark) {
        const CollectiveInfo info = Collectives::instance().at(mark.number);
        row.addMetadataQuoted("Collective name", info.call);
        row.addMetadata("In msg nelems", info.in_elements);
        row.addMetadata("Out msg nelems", info.out_elements);
        row.addMetadata("Group size", static_cast<std::int64_t>(info.ranks.size()));
        row.addMetadataQuoted("dtype", info.dtype);
        row.addMetadataQuoted("In split size", listed(info.in_splits));
        row.addMetadataQuoted("Out split size", listed(info.out_splits));
        row.addMetadataQuoted("Process Group Name", info.group_name);
        row.addMetadataQuoted("Process Group Description", info.group_description);
        row.addMetadataQuoted("Process Group Ranks", listed(info.ranks));
        row.addMetadata("Rank", info.rank);
        row.addMetadata("Seq", mark.sequence);
        if (info.source >= 0) row.addMetadata("Src Rank", info.source);
        if (info.destination >= 0) row.addMetadata("Dst Rank", info.destination);
    }

    static void add_ids(GenericTraceActivity& row, const ProfiledLaunch& launch) {
        const std::string id = std::to_string(launch.record.sequence_id);
        row.addMetadataQuoted("nrt_sequence_id", id);
        row.addMetadataQuoted("flow_id", id);
    }

    // An op and the program that it runs as are two rows of torch's table: two names.
    static std::string name_of(const LaunchRecord& record) {
        const auto& signature_name = shared().signature_name;
        if (!signature_name) return words_of(record.kind).call;
        const std::string name = signature_name(record.signature);
        const std::string op = name.substr(name.rfind(':') + 1);
        if (record.kind == LaunchKind::kKernel) return "NEFF " + op;
        return record.kind == LaunchKind::kMemset ? "Memset " + op : name;
    }

    static void name_streams(libkineto::ActivityLogger& logger,
                             const std::vector<ProfiledLaunch>& launches, std::int64_t time_ns) {
        std::set<std::pair<std::int32_t, std::int64_t>> places;
        std::set<std::int32_t> cores;
        for (const ProfiledLaunch& launch : launches) {
            places.insert({launch.record.core, launch.record.stream});
            cores.insert(launch.record.core);
        }
        for (const std::int32_t core : cores) {
            if (core != 0) logger.handleDeviceInfo(*device_info(core), time_ns);
        }
        for (const auto& [core, stream] : places) {
            logger.handleResourceInfo({stream, stream, core, "stream " + std::to_string(stream)},
                                      time_ns);
        }
    }

    ProfilerConfig config_;
    std::shared_ptr<Recorder> own_;
    std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
    std::uint64_t observed_ = 0;
};

class Plugin final : public libkineto::IActivityProfiler {
  public:
    const std::string& name() const override { return name_; }
    const std::set<ActivityType>& availableActivities() const override { return activities_; }

    // A profile of the CPU alone asks for the runtime and driver rows too; it gets none.
    std::unique_ptr<libkineto::IActivityProfilerSession> configure(
        const std::set<ActivityType>& activities, const libkineto::Config& config) override {
        if (activities.count(ActivityType::CONCURRENT_KERNEL) == 0) return nullptr;
        return std::make_unique<Session>(config.getCustomConfig());
    }
    std::unique_ptr<libkineto::IActivityProfilerSession> configure(
        std::int64_t /*start_ms*/, std::int64_t /*duration_ms*/,
        const std::set<ActivityType>& activities, const libkineto::Config& config) override {
        return configure(activities, config);
    }

  private:
    std::string name_ = kPluginName;
    std::set<ActivityType> activities_ = {
        ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY, ActivityType::GPU_MEMSET,
        ActivityType::PRIVATEUSE1_RUNTIME, ActivityType::PRIVATEUSE1_DRIVER};
};

REGISTER_PRIVATEUSE1_PROFILER(Plugin);

}  // namespace

void connect_profilers(SignatureName signature_name) {
    shared().signature_name = std::move(signature_name);
    Timeline::instance().set_launch_listener([](const LaunchRecord& record) {
        Observer::instance().on_launch(record);
        record_launch(record);
    });
    Timeline::instance().set_wait_listener(
        [](const WaitRecord& record) { Observer::instance().on_wait(record); });
}

void set_profiler_header(std::string device_properties, std::string simulation) {
    shared().device_properties = std::move(device_properties);
    shared().simulation = std::move(simulation);
}

bool has_last_observed() {
    return shared().last_observed.has_value();
}

Observed take_last_observed() {
    TORCH_CHECK_VALUE(has_last_observed(), "no torch profile has recorded the neuron device");
    Observed observed = std::move(*shared().last_observed);
    shared().last_observed.reset();
    return observed;
}

std::uint64_t num_dropped_by_profiler() {
    return shared().num_dropped;
}

}  // namespace trnscope::sim
