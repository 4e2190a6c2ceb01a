#pragma once
// How much of each core's HBM is in use. Free of torch.

#include <cstdint>
#include <mutex>
#include <vector>

namespace trnscope::sim {

struct MemoryStats {
    std::int64_t current = 0;
    std::int64_t peak = 0;
    std::int64_t allocated = 0;  // sum of all allocations
    std::int64_t freed = 0;
    std::int64_t num_allocations = 0;
    std::int64_t num_frees = 0;
    std::int64_t num_ooms = 0;
};

class Hbm {
  public:
    static Hbm& instance();

    void configure(std::int32_t num_cores, std::int64_t capacity_bytes);
    std::int64_t capacity_bytes() const { return capacity_bytes_; }
    // Takes that many bytes; false where the core has no room for them.
    bool take(std::int32_t core, std::int64_t bytes);
    void give(std::int32_t core, std::int64_t bytes);
    // A device address that no other tensor of the process has had.
    std::uint64_t new_address(std::int32_t core, std::int64_t bytes);
    MemoryStats stats(std::int32_t core) const;
    void reset_peak(std::int32_t core);
    void reset_accumulated(std::int32_t core);

  private:
    mutable std::mutex mutex_;
    std::int64_t capacity_bytes_ = 0;
    std::vector<MemoryStats> cores_;
    std::vector<std::uint64_t> next_address_;
};

// Allocations are rounded up to this, as device allocators do.
std::int64_t round_up(std::int64_t bytes);

}  // namespace trnscope::sim
