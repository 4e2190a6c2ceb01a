#include "timeline.h"

#include <algorithm>

namespace trnscope::sim {
namespace {

// libnrt numbers executions from here; the low bits serve as correlation id.
constexpr std::uint64_t kFirstSequenceId = std::uint64_t{1} << 48;

bool runs_a_program(LaunchKind kind) {
    return kind == LaunchKind::kKernel || kind == LaunchKind::kGraph;
}

}  // namespace

Timeline& Timeline::instance() {
    static Timeline* timeline = new Timeline();  // lives until the process ends
    return *timeline;
}

void Timeline::configure(std::int32_t num_cores, const RuntimeCosts& costs) {
    std::lock_guard lock(mutex_);
    num_cores_ = num_cores;
    costs_ = costs;
    host_ns_ = 0;
    num_launches_ = 0;
    queues_.clear();
    loaded_.clear();
    engines_free_ns_.clear();
    num_dropped_ = 0;
    launches_.clear();
    waits_.clear();
}

Timeline::Queue& Timeline::queue(std::int32_t core, std::int64_t stream) {
    return queues_[{core, stream}];
}

bool Timeline::is_full(const Queue& queue) const {
    return costs_.queue_depth > 0 &&
           queue.ends.size() == static_cast<std::size_t>(costs_.queue_depth) &&
           queue.ends[queue.next] > host_ns_;
}

void Timeline::push_end(Queue& queue, std::int64_t end_ns) {
    queue.tail_ns = end_ns;
    if (costs_.queue_depth <= 0) return;
    if (queue.ends.size() < static_cast<std::size_t>(costs_.queue_depth)) {
        queue.ends.push_back(end_ns);
        return;
    }
    queue.ends[queue.next] = end_ns;
    queue.next = (queue.next + 1) % queue.ends.size();
}

std::int64_t Timeline::switch_cost(const LaunchRequest& request) {
    if (costs_.switch_ns == 0 || !runs_a_program(request.kind)) return 0;
    auto [place, is_first] = loaded_.try_emplace(request.core, request.signature);
    if (!is_first && place->second == request.signature) return 0;
    place->second = request.signature;
    return costs_.switch_ns;
}

LaunchRecord Timeline::place(const LaunchRequest& request, Queue& queue) {
    LaunchRecord record;
    record.correlation_id = ++num_launches_;
    record.sequence_id = kFirstSequenceId + record.correlation_id;
    record.thread = request.thread;
    record.stream = request.stream;
    record.signature = request.signature;
    record.core = request.core;
    record.kind = request.kind;
    record.bytes = request.bytes;
    record.host_real_ns = request.host_real_ns;
    record.compile_ns = request.cost.compile_ns;
    record.host_start_ns = host_ns_;
    host_ns_ += request.cost.host_ns + request.cost.compile_ns;
    record.host_end_ns = host_ns_;
    record.device_start_ns = std::max(host_ns_ + costs_.launch_latency_ns, queue.tail_ns);
    std::int64_t* const engines_free_ns =
        runs_a_program(request.kind) ? &engines_free_ns_[request.core] : nullptr;
    if (engines_free_ns != nullptr) {
        record.device_start_ns = std::max(record.device_start_ns, *engines_free_ns);
    }
    record.switch_ns = switch_cost(request);
    record.device_end_ns = record.device_start_ns + record.switch_ns + request.cost.device_ns;
    if (engines_free_ns != nullptr) *engines_free_ns = record.device_end_ns;
    push_end(queue, record.device_end_ns);
    return record;
}

LaunchRecord Timeline::launch(const LaunchRequest& request) {
    LaunchRecord record;
    WaitRecord full;
    bool has_waited = false;
    {
        std::lock_guard lock(mutex_);
        Queue& target = queue(request.core, request.stream);
        if (is_full(target)) {
            has_waited = true;
            full.thread = request.thread;
            full.stream = request.stream;
            full.core = request.core;
            full.kind = WaitKind::kQueue;
            full.host_real_ns = request.host_real_ns;
            full.host_start_ns = host_ns_;
            host_ns_ = full.host_end_ns = target.ends[target.next];
            log(full);
        }
        record = place(request, target);
        log(record);
    }
    if (has_waited) tell(full);
    if (launch_listener_) launch_listener_(record);
    return record;
}

std::int64_t Timeline::now_ns() const {
    std::lock_guard lock(mutex_);
    return host_ns_;
}

void Timeline::host_only() {
    advance_host(costs_.host_only_ns);
}

void Timeline::advance_host(std::int64_t ns) {
    std::lock_guard lock(mutex_);
    host_ns_ += ns;
}

WaitRecord Timeline::wait_until(std::int64_t time_ns, std::int32_t core, std::int64_t stream,
                                WaitKind kind, Waiter waiter) {
    WaitRecord record;
    record.thread = waiter.thread;
    record.host_real_ns = waiter.host_real_ns;
    record.stream = stream;
    record.core = core;
    record.kind = kind;
    record.host_start_ns = host_ns_;
    host_ns_ = record.host_end_ns = std::max(host_ns_, time_ns) + costs_.sync_ns;
    log(record);
    return record;
}

void Timeline::wait_stream(std::int32_t core, std::int64_t stream, WaitKind kind, Waiter waiter) {
    WaitRecord record;
    {
        std::lock_guard lock(mutex_);
        record = wait_until(queue(core, stream).tail_ns, core, stream, kind, waiter);
    }
    tell(record);
}

void Timeline::wait_core(std::int32_t core, Waiter waiter) {
    WaitRecord record;
    {
        std::lock_guard lock(mutex_);
        std::int64_t tail_ns = 0;
        for (const auto& [key, queue] : queues_) {
            if (key.first == core) tail_ns = std::max(tail_ns, queue.tail_ns);
        }
        record = wait_until(tail_ns, core, -1, WaitKind::kDevice, waiter);
    }
    tell(record);
}

void Timeline::wait_time(std::int32_t core, std::int64_t time_ns, Waiter waiter) {
    WaitRecord record;
    {
        std::lock_guard lock(mutex_);
        record = wait_until(time_ns, core, -1, WaitKind::kEvent, waiter);
    }
    tell(record);
}

bool Timeline::query_stream(std::int32_t core, std::int64_t stream) {
    std::lock_guard lock(mutex_);
    host_ns_ += costs_.query_ns;
    return queue(core, stream).tail_ns <= host_ns_;
}

bool Timeline::query_time(std::int64_t time_ns) {
    std::lock_guard lock(mutex_);
    host_ns_ += costs_.query_ns;
    return time_ns <= host_ns_;
}

std::int64_t Timeline::record_event(std::int32_t core, std::int64_t stream) {
    std::lock_guard lock(mutex_);
    return std::max(host_ns_, queue(core, stream).tail_ns);
}

void Timeline::block_stream(std::int32_t core, std::int64_t stream, std::int64_t time_ns) {
    std::lock_guard lock(mutex_);
    Queue& target = queue(core, stream);
    target.tail_ns = std::max(target.tail_ns, time_ns);
}

void Timeline::set_launch_listener(LaunchListener listener) {
    std::lock_guard lock(mutex_);
    launch_listener_ = std::move(listener);
}

void Timeline::set_wait_listener(WaitListener listener) {
    std::lock_guard lock(mutex_);
    wait_listener_ = std::move(listener);
}

void Timeline::set_log_capacity(std::size_t capacity) {
    std::lock_guard lock(mutex_);
    log_capacity_ = capacity;
}

std::vector<LaunchRecord> Timeline::launches() const {
    std::lock_guard lock(mutex_);
    return launches_;
}

std::vector<WaitRecord> Timeline::waits() const {
    std::lock_guard lock(mutex_);
    return waits_;
}

std::uint64_t Timeline::num_launches() const {
    std::lock_guard lock(mutex_);
    return num_launches_;
}

std::uint64_t Timeline::num_dropped() const {
    std::lock_guard lock(mutex_);
    return num_dropped_;
}

void Timeline::clear_log() {
    std::lock_guard lock(mutex_);
    launches_.clear();
    waits_.clear();
    num_dropped_ = 0;
}

void Timeline::log(const LaunchRecord& record) {
    if (launches_.size() < log_capacity_) {
        launches_.push_back(record);
    } else {
        ++num_dropped_;
    }
}

void Timeline::log(const WaitRecord& record) {
    if (waits_.size() < log_capacity_) waits_.push_back(record);
}

void Timeline::tell(const WaitRecord& record) {
    if (wait_listener_) wait_listener_(record);
}

}  // namespace trnscope::sim
