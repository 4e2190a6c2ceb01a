#include "hbm.h"

#include <algorithm>

namespace trnscope::sim {
namespace {

constexpr std::int64_t kAlignment = 512;
// Addresses that no process maps, so that a stray access fails at once.
constexpr std::uint64_t kFirstAddress = std::uint64_t{0x4e} << 56;
constexpr std::uint64_t kCoreSpan = std::uint64_t{1} << 48;

}  // namespace

std::int64_t round_up(std::int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Hbm& Hbm::instance() {
    static Hbm* hbm = new Hbm();
    return *hbm;
}

void Hbm::configure(std::int32_t num_cores, std::int64_t capacity_bytes) {
    std::lock_guard lock(mutex_);
    capacity_bytes_ = capacity_bytes;
    cores_.resize(num_cores);
    for (auto core = static_cast<std::uint64_t>(next_address_.size());
         core < static_cast<std::uint64_t>(num_cores); ++core) {
        next_address_.push_back(kFirstAddress + core * kCoreSpan);
    }
}

bool Hbm::take(std::int32_t core, std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    MemoryStats& stats = cores_.at(core);
    if (stats.current + bytes > capacity_bytes_) {
        ++stats.num_ooms;
        return false;
    }
    stats.current += bytes;
    stats.allocated += bytes;
    stats.peak = std::max(stats.peak, stats.current);
    ++stats.num_allocations;
    return true;
}

void Hbm::give(std::int32_t core, std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    MemoryStats& stats = cores_.at(core);
    stats.current -= bytes;
    stats.freed += bytes;
    ++stats.num_frees;
}

std::uint64_t Hbm::new_address(std::int32_t core, std::int64_t bytes) {
    std::lock_guard lock(mutex_);
    const std::uint64_t address = next_address_.at(core);
    next_address_[core] += static_cast<std::uint64_t>(bytes);
    return address;
}

MemoryStats Hbm::stats(std::int32_t core) const {
    std::lock_guard lock(mutex_);
    return cores_.at(core);
}

void Hbm::reset_peak(std::int32_t core) {
    std::lock_guard lock(mutex_);
    cores_.at(core).peak = cores_.at(core).current;
}

void Hbm::reset_accumulated(std::int32_t core) {
    std::lock_guard lock(mutex_);
    MemoryStats& stats = cores_.at(core);
    stats.allocated = stats.freed = 0;
    stats.num_allocations = stats.num_frees = stats.num_ooms = 0;
}

}  // namespace trnscope::sim
