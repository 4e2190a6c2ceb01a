#pragma once
// What a program does, in virtual time: ops, ranges, launches, waits and memory.
//
// The record is one log for the process that is kept while anyone records; a recording is a
// stretch of it. Several can run at once: `trnscope run` around a script that profiles itself.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives.h"
#include "timeline.h"

namespace trnscope::sim {

constexpr std::int64_t kStillOpen = -1;
constexpr std::uint8_t kPythonScope = 200;  // beyond at::RecordScope: a function of Python

// Arguments of an op, in Kineto's form: an entry for each, empty where it is no tensor.
struct ObservedInputs {
    // Of a tensor its shape, of a list of tensors each one's; empty for everything else.
    std::vector<std::vector<std::vector<std::int64_t>>> shapes;
    std::vector<std::string> types;
    std::vector<std::string> values;  // of scalars and lists of them
};

struct ObservedRange {
    std::uint64_t id = 0;      // rises in program order
    std::uint64_t parent = 0;  // the range around it on its thread, functions of Python apart
    std::int64_t start_ns = 0;
    std::int64_t end_ns = kStillOpen;
    std::int64_t sequence = -1;        // autograd's; -1: none
    std::uint32_t thread = 0;          // numbered by first appearance
    std::uint32_t forward_thread = 0;  // of an op of autograd: the forward op's, plus one
    std::uint32_t name = 0;            // place in Observed::names
    std::int32_t inputs = -1;          // place in Observed::inputs
    std::uint8_t scope = 0;            // at::RecordScope, or kPythonScope
};

struct ObservedLaunch {
    LaunchRecord record;
    std::uint64_t range = 0;  // id of the innermost open range; 0: none
    std::uint32_t thread = 0;
    CollectiveMark collective;
};

struct ObservedWait {
    WaitRecord record;
    std::uint64_t range = 0;
    std::uint32_t thread = 0;
};

struct ObservedMemory {
    std::int64_t time_ns = 0;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;  // negative: freed
    std::int64_t total = 0;
    std::int32_t core = 0;
    std::uint32_t thread = 0;
};

struct Observed {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::vector<ObservedRange> ranges;
    std::vector<ObservedLaunch> launches;
    std::vector<ObservedWait> waits;
    std::vector<ObservedMemory> memory;
    std::vector<ObservedInputs> inputs;
    std::vector<std::string> names;
    std::vector<CollectiveInfo> collectives;  // by the numbers that launches carry
    bool with_python = false;                 // whether functions of Python were recorded
};

// A function of Python that is running.
struct PythonRange {
    std::uint64_t generation = 0;
    std::uint64_t id = 0;
    std::size_t place = 0;
};

class Observer {
  public:
    static Observer& instance();

    // Starts a recording; returns what stops it. Functions are recorded of this thread only.
    std::uint64_t begin(bool with_inputs, bool with_python = false);
    // Ranges still open end with the recording.
    Observed end(std::uint64_t recording);
    bool is_active() const;

    void on_launch(const LaunchRecord& record);
    void on_wait(const WaitRecord& record);
    PythonRange open_python(const char* name);
    // One in which nothing was recorded and no time passed is forgotten.
    void close_python(const PythonRange& range);
    void on_memory(std::uint64_t address, std::int64_t bytes, std::int64_t total,
                   std::int32_t core);

  private:
    struct Mark {
        std::int64_t start_ns;
        std::size_t ranges, launches, waits, memory;
        bool with_python = false;
    };
    Mark mark_of(std::uint64_t recording) const;
    void clear_if_unused();
    bool begins_at(std::size_t range) const;

    std::uint64_t num_begun_ = 0;
    std::unordered_map<std::uint64_t, Mark> running_;
};

}  // namespace trnscope::sim
