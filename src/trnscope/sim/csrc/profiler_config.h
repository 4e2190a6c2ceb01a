#pragma once
// What NeuronConfig asks of the device's profiler. Free of torch.

#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace trnscope::sim {

struct ProfilerConfig {
    bool is_ours = false;                         // whether a NeuronConfig was given at all
    bool with_stack = false;                      // in the recording in virtual time
    std::optional<std::set<std::int32_t>> cores;  // none: all
    std::optional<std::size_t> max_events;        // of each core
};

// Reads the JSON object that trnscope/sim/neuronx/config.py writes. What another library put
// there (any text) is no error: it asks for nothing.
ProfilerConfig parse_profiler_config(const std::string& text);

}  // namespace trnscope::sim
