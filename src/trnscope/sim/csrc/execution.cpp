#include "execution.h"

namespace trnscope::sim {

Executions& Executions::instance() {
    static Executions* executions = new Executions();
    return *executions;
}

Execution& Executions::add(const std::string& name, LaunchKind kind, const LaunchCost& cost) {
    std::lock_guard lock(mutex_);
    Execution& added = all_.emplace_back();
    added.signature = static_cast<std::uint32_t>(all_.size() - 1);
    added.name = name;
    added.kind = kind;
    added.cost = cost;
    return added;
}

Execution& Executions::at(std::uint32_t signature) {
    std::lock_guard lock(mutex_);
    return all_.at(signature);
}

std::uint32_t Executions::size() const {
    std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(all_.size());
}

void Executions::restart() {
    std::lock_guard lock(mutex_);
    for (Execution& execution : all_) {
        execution.is_compiled = false;
        execution.num_launches = 0;
    }
}

}  // namespace trnscope::sim
