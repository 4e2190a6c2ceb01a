#pragma once
// The launches that torch's profiler sees while it records, on its own clock.
//
// Host rows of torch's profiler are real time. A launch is placed where the program really made
// it; its device row starts after the launch latency and after the stream's earlier work, and
// lasts as long as the model says. Only durations are simulated time then; the virtual-time
// profile is the observer's.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "collectives.h"
#include "profiler_config.h"
#include "timeline.h"

namespace trnscope::sim {

struct ProfiledLaunch {
    LaunchRecord record;
    std::int64_t call_start_ns = 0;  // epoch ns, real
    std::int64_t call_end_ns = 0;
    std::int64_t device_start_ns = 0;
    std::int64_t device_end_ns = 0;
    std::int32_t op = 0;  // Kineto's correlation id of the op; 0: none
    std::int32_t thread = 0;
    CollectiveMark collective;
};

class ProfiledLaunches {
  public:
    explicit ProfiledLaunches(ProfilerConfig config) : config_(std::move(config)) {}

    // `launch`: all but its times, which are set here.
    void add(ProfiledLaunch launch);
    // In the order of the calls.
    std::vector<ProfiledLaunch> take();
    std::uint64_t num_dropped() const { return num_dropped_; }

  private:
    ProfilerConfig config_;
    std::mutex mutex_;
    std::map<std::int32_t, std::deque<ProfiledLaunch>> rings_;  // by core
    std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t> tails_;
    std::uint64_t num_dropped_ = 0;
};

}  // namespace trnscope::sim
