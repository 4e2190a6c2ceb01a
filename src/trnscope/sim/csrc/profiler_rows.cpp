#include "profiler_rows.h"

#include <algorithm>
#include <chrono>

namespace trnscope::sim {
namespace {

std::int64_t epoch_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace

void ProfiledLaunches::add(ProfiledLaunch launch) {
    std::lock_guard lock(mutex_);
    const LaunchRecord& record = launch.record;
    launch.call_start_ns = record.host_real_ns;
    launch.call_end_ns = epoch_ns();
    if (launch.call_start_ns <= 0) launch.call_start_ns = launch.call_end_ns;
    std::int64_t& tail_ns = tails_[{record.core, record.stream}];
    const std::int64_t ready_ns =
        launch.call_end_ns + Timeline::instance().costs().launch_latency_ns;
    launch.device_start_ns = std::max(ready_ns, tail_ns);
    launch.device_end_ns = launch.device_start_ns + record.device_end_ns - record.device_start_ns;
    tail_ns = launch.device_end_ns;
    if (config_.cores && !config_.cores->contains(record.core)) return;
    auto& ring = rings_[record.core];
    ring.push_back(std::move(launch));
    if (config_.max_events && ring.size() > *config_.max_events) {
        ring.pop_front();
        ++num_dropped_;
    }
}

std::vector<ProfiledLaunch> ProfiledLaunches::take() {
    std::lock_guard lock(mutex_);
    std::vector<ProfiledLaunch> all;
    for (const auto& [core, ring] : rings_) all.insert(all.end(), ring.begin(), ring.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
        return a.record.correlation_id < b.record.correlation_id;
    });
    rings_.clear();
    return all;
}

}  // namespace trnscope::sim
