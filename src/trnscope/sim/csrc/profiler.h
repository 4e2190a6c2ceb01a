#pragma once
// The device's part of torch.profiler: a plugin for Kineto, and the stubs of the older profiler.

#include <functional>
#include <string>

#include "observer.h"

namespace trnscope::sim {

// The name of a signature, as the op is called.
using SignatureName = std::function<std::string(std::uint32_t)>;

// Once for a process: connects the timeline to the profilers.
void connect_profilers(SignatureName signature_name);
// Texts for a trace's header, as JSON: the list of devices without its brackets, and an object.
void set_profiler_header(std::string device_properties, std::string simulation);
// The recording in virtual time that ran with the last torch profile that had a NeuronConfig.
bool has_last_observed();
Observed take_last_observed();
// Launches that max_events_per_nc made the last torch profile drop.
std::uint64_t num_dropped_by_profiler();

}  // namespace trnscope::sim
