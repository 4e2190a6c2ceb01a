#pragma once
// What the cost model says of each signature, asked once and then looked up. Free of torch.

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "timeline.h"

namespace trnscope::sim {

// One compiled program of the device, or one size of copy.
struct Execution {
    std::uint32_t signature = 0;  // its row in the table
    std::string name;             // aten::addmm, a graph's name, a collective's
    LaunchKind kind = LaunchKind::kKernel;
    LaunchCost cost;  // compile_ns is paid by the first launch
    std::int64_t bytes = 0;
    bool is_on_cpu = false;  // has no implementation on the device
    // For ops on the CPU: what is copied before and after.
    std::int64_t input_bytes = 0;
    std::int64_t output_bytes = 0;
    LaunchCost copy_in;
    LaunchCost copy_out;
    std::atomic<bool> is_compiled{false};
    std::atomic<std::uint64_t> num_launches{0};
};

class Executions {
  public:
    static Executions& instance();

    // References stay valid for the life of the process.
    Execution& add(const std::string& name, LaunchKind kind, const LaunchCost& cost);
    Execution& at(std::uint32_t signature);
    std::uint32_t size() const;
    // Forgets what has been compiled and counted.
    void restart();

  private:
    mutable std::mutex mutex_;
    std::deque<Execution> all_;
};

}  // namespace trnscope::sim
