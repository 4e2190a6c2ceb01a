#pragma once
// What torch.distributed says of each collective: its message and its group. Free of torch.

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace trnscope::sim {

// The words and counts are those of a profile of NCCL's process group.
struct CollectiveInfo {
    std::string call;  // allreduce, _allgather_base, all_to_allv
    std::int64_t in_elements = 0;
    std::int64_t out_elements = 0;
    std::vector<std::int64_t> in_splits;
    std::vector<std::int64_t> out_splits;
    std::string dtype;  // as torch spells it: BFloat16
    std::string group_name;
    std::string group_description;
    std::vector<std::int64_t> ranks;  // of the group, in the whole job
    std::int64_t rank = 0;            // this process's, in the group
    // Of a message from one rank to another: both, in the group. -1: none, or any rank.
    std::int64_t source = -1;
    std::int64_t destination = -1;
};

// Each different one has a number, which launches carry.
class Collectives {
  public:
    static Collectives& instance();

    std::int32_t number_of(const CollectiveInfo& info);
    CollectiveInfo at(std::int32_t number) const;
    std::vector<CollectiveInfo> all() const;

  private:
    mutable std::mutex mutex_;
    std::deque<CollectiveInfo> all_;
    std::unordered_map<std::string, std::int32_t> numbers_;
};

// Which collective a launch is: its number (-1: none) and its place in its group's order.
struct CollectiveMark {
    std::int32_t number = -1;
    std::uint64_t sequence = 0;
};

// What this thread launches meanwhile is this collective: listeners to the timeline ask for it.
class CollectiveScope {
  public:
    explicit CollectiveScope(CollectiveMark mark);
    ~CollectiveScope();
    CollectiveScope(const CollectiveScope&) = delete;
    CollectiveScope& operator=(const CollectiveScope&) = delete;
};
CollectiveMark current_collective();

// As Kineto writes a list: [0, 1]
std::string listed(const std::vector<std::int64_t>& values);

}  // namespace trnscope::sim
