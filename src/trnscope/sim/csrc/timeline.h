#pragma once
// The virtual clock: when each execution starts and ends on the simulated device.
//
// No torch and no real time in here: a timeline is decided by the order of the calls and by the
// costs that they bring, so that the same program gives the same timeline to the nanosecond.
//
// There is one host clock for the process and one tail (end of the last execution) for each core
// and stream. See docs/decisions for the rules.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trnscope::sim {

enum class LaunchKind : std::uint8_t {
    kKernel = 0,
    kCopyHostToDevice = 1,
    kCopyDeviceToHost = 2,
    kCopyDeviceToDevice = 3,
    kMemset = 4,
    kGraph = 5,
    kCollective = 6,
};

// Costs of the host that belong to no single op; all from the cost model's data.
struct RuntimeCosts {
    std::int64_t launch_latency_ns = 0;  // from the end of the host's call to the device's start
    std::int64_t switch_ns = 0;          // on the device, when a core loads another program
    std::int64_t host_only_ns = 0;       // an op without device work: a view, an allocation
    std::int64_t sync_ns = 0;            // a wait for the device, beyond the device's own time
    std::int64_t query_ns = 0;           // asking whether the device is done
    std::int64_t queue_depth = 0;        // executions a stream may hold; 0: no limit
};

// What one execution costs.
struct LaunchCost {
    std::int64_t host_ns = 0;
    std::int64_t device_ns = 0;
    std::int64_t compile_ns = 0;  // zero unless this launch compiles its program
};

struct LaunchRequest {
    LaunchKind kind = LaunchKind::kKernel;
    std::int32_t core = 0;
    std::int64_t stream = 0;
    std::uint64_t thread = 0;
    std::uint32_t signature = 0;  // row in the table of signatures
    std::int64_t bytes = 0;
    std::int64_t host_real_ns = 0;  // epoch ns when the op was called; kept, never computed with
    LaunchCost cost;
};

// One device execution. Times are virtual ns since activation, but host_real_ns.
struct LaunchRecord {
    std::uint64_t sequence_id = 0;  // as nrt_sequence_id: above 2^48, counts up by one
    std::uint64_t correlation_id = 0;
    std::uint64_t thread = 0;
    std::int64_t stream = 0;
    std::int64_t host_start_ns = 0;
    std::int64_t host_end_ns = 0;
    std::int64_t compile_ns = 0;  // the part of the host's time that compiled
    std::int64_t switch_ns = 0;   // the part of the device's time that loaded the program
    std::int64_t device_start_ns = 0;
    std::int64_t device_end_ns = 0;
    std::int64_t host_real_ns = 0;
    std::int64_t bytes = 0;
    std::uint32_t signature = 0;
    std::int32_t core = 0;
    LaunchKind kind = LaunchKind::kKernel;
};

enum class WaitKind : std::uint8_t {
    kDevice = 0,  // torch.neuron.synchronize
    kStream = 1,
    kEvent = 2,
    kRead = 3,   // the program needs a value: item(), a copy to the host, nonzero
    kQueue = 4,  // the stream's queue was full
};

// The host waited for the device.
struct WaitRecord {
    std::uint64_t thread = 0;
    std::int64_t stream = 0;  // -1: all streams of the core
    std::int64_t host_start_ns = 0;
    std::int64_t host_end_ns = 0;
    std::int64_t host_real_ns = 0;
    std::int32_t core = 0;
    WaitKind kind = WaitKind::kDevice;
};

struct Waiter {
    std::uint64_t thread = 0;
    std::int64_t host_real_ns = 0;
};

// Called on the launching thread, outside the timeline's lock.
using LaunchListener = std::function<void(const LaunchRecord&)>;
using WaitListener = std::function<void(const WaitRecord&)>;

class Timeline {
  public:
    static Timeline& instance();

    // Starts anew: clock at zero, empty log.
    void configure(std::int32_t num_cores, const RuntimeCosts& costs);
    std::int32_t num_cores() const { return num_cores_; }
    const RuntimeCosts& costs() const { return costs_; }

    LaunchRecord launch(const LaunchRequest& request);
    std::int64_t now_ns() const;
    // An op that only the host carries out.
    void host_only();
    void advance_host(std::int64_t ns);

    // The host waits until all work given so far to a stream or core has ended.
    void wait_stream(std::int32_t core, std::int64_t stream, WaitKind kind, Waiter waiter);
    void wait_core(std::int32_t core, Waiter waiter);
    // The host waits until a time of the device that record_event gave.
    void wait_time(std::int32_t core, std::int64_t time_ns, Waiter waiter);
    // Whether the work has ended; asking takes time, so a loop that polls comes to an end.
    bool query_stream(std::int32_t core, std::int64_t stream);
    bool query_time(std::int64_t time_ns);

    // The time at which everything given so far to the stream has ended.
    std::int64_t record_event(std::int32_t core, std::int64_t stream);
    // Later work of the stream starts no earlier than this.
    void block_stream(std::int32_t core, std::int64_t stream, std::int64_t time_ns);

    void set_launch_listener(LaunchListener listener);
    void set_wait_listener(WaitListener listener);

    // The log keeps the first `capacity` records and counts those it drops.
    void set_log_capacity(std::size_t capacity);
    std::vector<LaunchRecord> launches() const;
    std::vector<WaitRecord> waits() const;
    std::uint64_t num_launches() const;
    std::uint64_t num_dropped() const;
    void clear_log();

  private:
    struct Queue {
        std::int64_t tail_ns = 0;
        std::vector<std::int64_t> ends;  // ring of the last queue_depth ends
        std::size_t next = 0;
    };
    using QueueKey = std::pair<std::int32_t, std::int64_t>;

    Queue& queue(std::int32_t core, std::int64_t stream);
    bool is_full(const Queue& queue) const;
    void push_end(Queue& queue, std::int64_t end_ns);
    std::int64_t switch_cost(const LaunchRequest& request);
    LaunchRecord place(const LaunchRequest& request, Queue& queue);
    WaitRecord wait_until(std::int64_t time_ns, std::int32_t core, std::int64_t stream,
                          WaitKind kind, Waiter waiter);
    void log(const LaunchRecord& record);
    void log(const WaitRecord& record);
    void tell(const WaitRecord& record);

    mutable std::mutex mutex_;
    std::int32_t num_cores_ = 1;
    RuntimeCosts costs_;
    std::int64_t host_ns_ = 0;
    std::uint64_t num_launches_ = 0;
    std::map<QueueKey, Queue> queues_;
    std::unordered_map<std::int32_t, std::uint32_t> loaded_;  // program last run by each core
    // When each core's engines are free: they run one program at a time, of whichever stream.
    std::unordered_map<std::int32_t, std::int64_t> engines_free_ns_;
    std::size_t log_capacity_ = 1'000'000;
    std::uint64_t num_dropped_ = 0;
    std::vector<LaunchRecord> launches_;
    std::vector<WaitRecord> waits_;
    LaunchListener launch_listener_;
    WaitListener wait_listener_;
};

}  // namespace trnscope::sim
