#include "observer.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>

#include "python_calls.h"

namespace trnscope::sim {
namespace {

constexpr std::size_t kLongestList = 64;  // longer lists of scalars are left out, as Kineto does

struct Log {
    std::mutex mutex;
    Observed kept;
    std::unordered_map<std::string, std::uint32_t> name_numbers;
    std::unordered_map<std::uint64_t, std::uint32_t> threads;  // torch's thread id to ours
    std::uint64_t generation = 0;  // of the log: it counts up when the log is emptied
    std::uint64_t num_ranges = 0;
    at::CallbackHandle callback = 0;
    bool with_inputs = false;
};

Log& log() {
    static Log* log = new Log();  // lives until the process ends
    return *log;
}

std::atomic<bool> is_recording{false};

struct RangeContext final : at::ObserverContext {
    std::uint64_t generation = 0;
    std::uint64_t id = 0;
    std::size_t place = 0;
};

std::vector<std::uint64_t>& open_ranges() {
    static thread_local std::vector<std::uint64_t> ranges;
    return ranges;
}

std::uint64_t innermost_range() {
    return open_ranges().empty() ? 0 : open_ranges().back();
}

// Caller holds the log's mutex.
std::uint32_t thread_number(std::uint64_t torch_thread) {
    auto& threads = log().threads;
    return threads.try_emplace(torch_thread, static_cast<std::uint32_t>(threads.size()))
        .first->second;
}

std::uint32_t this_thread() {
    return thread_number(at::RecordFunction::currentThreadId());
}

std::uint32_t name_number(const char* name) {
    auto [place, is_new] =
        log().name_numbers.try_emplace(name, static_cast<std::uint32_t>(log().kept.names.size()));
    if (is_new) log().kept.names.emplace_back(name);
    return place->second;
}

std::vector<std::int64_t> shape_of(const at::Tensor& tensor) {
    const bool has_shape =
        tensor.defined() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
    return has_shape ? tensor.sizes().vec() : std::vector<std::int64_t>{};
}

bool is_scalar_list(const c10::IValue& value) {
    return value.isIntList() || value.isDoubleList() || value.isBoolList();
}

std::string scalar_text(const c10::IValue& value) {
    if (value.isInt()) return std::to_string(value.toInt());
    if (value.isBool()) return value.toBool() ? "True" : "False";
    const bool is_list = is_scalar_list(value);
    const bool is_long = is_list && value.toListRef().size() > kLongestList;
    if (is_long || !(is_list || value.isScalar())) return "";
    std::ostringstream text;
    text << value;
    return text.str();
}

const char* type_of(const c10::IValue& value) {
    if (is_scalar_list(value)) return "ScalarList";
    return value.isScalar() || value.isBool() ? "Scalar" : "";
}

void add_input(ObservedInputs& inputs, const c10::IValue& value) {
    auto& shapes = inputs.shapes.emplace_back();
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        shapes.push_back(shape_of(tensor));
        inputs.types.emplace_back(tensor.defined() ? std::string(tensor.dtype().name()) : "");
        inputs.values.emplace_back();
        return;
    }
    if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) shapes.push_back(shape_of(tensor));
        inputs.types.emplace_back("TensorList");
        inputs.values.emplace_back();
        return;
    }
    inputs.types.emplace_back(type_of(value));
    inputs.values.push_back(scalar_text(value));
}

ObservedInputs inputs_of(const at::RecordFunction& function) {
    ObservedInputs inputs;
    for (const c10::IValue& value : function.inputs()) add_input(inputs, value);
    return inputs;
}

// record_function begins and ends a range by ops of the profiler's own: neither holds the other.
bool is_of_profiler(const at::RecordFunction& function) {
    return std::strncmp(function.name(), "profiler::", 10) == 0;
}

std::unique_ptr<at::ObserverContext> on_enter(const at::RecordFunction& function) {
    auto context = std::make_unique<RangeContext>();
    ObservedRange range;
    range.start_ns = Timeline::instance().now_ns();
    range.sequence = function.seqNr();
    range.scope = static_cast<std::uint8_t>(function.scope());
    range.parent = innermost_range();
    const bool with_inputs = function.needsInputs() && function.num_inputs() > 0;
    ObservedInputs inputs = with_inputs ? inputs_of(function) : ObservedInputs{};
    std::lock_guard lock(log().mutex);
    range.id = ++log().num_ranges;
    range.thread = this_thread();
    if (function.forwardThreadId() != 0) {
        range.forward_thread = thread_number(function.forwardThreadId()) + 1;
    }
    range.name = name_number(function.name());
    if (with_inputs && log().with_inputs) {
        range.inputs = static_cast<std::int32_t>(log().kept.inputs.size());
        log().kept.inputs.push_back(std::move(inputs));
    }
    context->generation = log().generation;
    context->id = range.id;
    context->place = log().kept.ranges.size();
    log().kept.ranges.push_back(range);
    if (!is_of_profiler(function)) open_ranges().push_back(range.id);
    return context;
}

void on_exit(const at::RecordFunction& function, at::ObserverContext* context) {
    const auto* range = static_cast<RangeContext*>(context);
    if (range == nullptr) return;
    auto& open = open_ranges();
    while (!is_of_profiler(function) && !open.empty() && open.back() >= range->id) open.pop_back();
    std::lock_guard lock(log().mutex);
    if (range->generation != log().generation) return;
    log().kept.ranges[range->place].end_ns = Timeline::instance().now_ns();
}

at::CallbackHandle add_callback() {
    return at::addGlobalCallback(
        at::RecordFunctionCallback(&on_enter, &on_exit)
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                     at::RecordScope::USER_SCOPE}));
}

void remove_python(std::vector<ObservedRange>& ranges) {
    const auto is_python = [](const ObservedRange& range) { return range.scope == kPythonScope; };
    ranges.erase(std::remove_if(ranges.begin(), ranges.end(), is_python), ranges.end());
}

template <typename Row>
std::vector<Row> tail(const std::vector<Row>& rows, std::size_t from) {
    return {rows.begin() + static_cast<std::ptrdiff_t>(from), rows.end()};
}

}  // namespace

Observer& Observer::instance() {
    static Observer* observer = new Observer();
    return *observer;
}

bool Observer::is_active() const {
    return is_recording.load(std::memory_order_relaxed);
}

std::uint64_t Observer::begin(bool with_inputs, bool with_python) {
    std::uint64_t recording = 0;
    {
        std::lock_guard lock(log().mutex);
        const Observed& kept = log().kept;
        if (running_.empty()) log().callback = add_callback();
        log().with_inputs |= with_inputs;
        const std::int64_t now_ns = Timeline::instance().now_ns();
        recording = ++num_begun_;
        running_[recording] = {now_ns, kept.ranges.size(), kept.launches.size(), kept.waits.size(),
                               kept.memory.size()};
        is_recording = true;
    }
    // Without the lock: the functions that run are told to this observer.
    if (with_python && begin_python_calls()) running_.at(recording).with_python = true;
    return recording;
}

Observed Observer::end(std::uint64_t recording) {
    const Mark mark = mark_of(recording);
    const bool is_ours = !mark.with_python || end_python_calls();
    std::lock_guard lock(log().mutex);
    const Observed& kept = log().kept;
    Observed result;
    result.start_ns = mark.start_ns;
    result.end_ns = Timeline::instance().now_ns();
    result.ranges = tail(kept.ranges, mark.ranges);
    result.launches = tail(kept.launches, mark.launches);
    result.waits = tail(kept.waits, mark.waits);
    result.memory = tail(kept.memory, mark.memory);
    result.inputs = kept.inputs;
    result.names = kept.names;
    result.collectives = Collectives::instance().all();
    result.with_python = mark.with_python && is_ours;
    if (!result.with_python) remove_python(result.ranges);
    for (ObservedRange& range : result.ranges) {
        if (range.end_ns == kStillOpen) range.end_ns = result.end_ns;
    }
    running_.erase(recording);
    clear_if_unused();
    return result;
}

Observer::Mark Observer::mark_of(std::uint64_t recording) const {
    std::lock_guard lock(log().mutex);
    const auto found = running_.find(recording);
    TORCH_CHECK_VALUE(found != running_.end(), "this recording is not running");
    return found->second;
}

void Observer::clear_if_unused() {
    if (!running_.empty()) return;
    is_recording = false;
    at::removeCallback(log().callback);
    log().kept = Observed{};
    log().name_numbers.clear();
    log().with_inputs = false;
    ++log().generation;
}

void Observer::on_launch(const LaunchRecord& record) {
    if (!is_active()) return;
    std::lock_guard lock(log().mutex);
    log().kept.launches.push_back({record, innermost_range(), this_thread(), current_collective()});
}

void Observer::on_wait(const WaitRecord& record) {
    if (!is_active()) return;
    std::lock_guard lock(log().mutex);
    log().kept.waits.push_back({record, innermost_range(), this_thread()});
}

PythonRange Observer::open_python(const char* name) {
    if (!is_active()) return {};
    ObservedRange range;
    range.start_ns = Timeline::instance().now_ns();
    range.scope = kPythonScope;
    std::lock_guard lock(log().mutex);
    range.id = ++log().num_ranges;
    range.thread = this_thread();
    range.name = name_number(name);
    auto& ranges = log().kept.ranges;
    ranges.push_back(range);
    return {log().generation, range.id, ranges.size() - 1};
}

void Observer::close_python(const PythonRange& range) {
    if (range.id == 0) return;
    const std::int64_t now_ns = Timeline::instance().now_ns();
    std::lock_guard lock(log().mutex);
    if (range.generation != log().generation) return;
    auto& ranges = log().kept.ranges;
    ObservedRange& own = ranges[range.place];
    own.end_ns = now_ns;
    const bool is_last = range.place + 1 == ranges.size() && !begins_at(ranges.size());
    if (!is_last || own.start_ns != now_ns) return;
    ranges.pop_back();
    if (log().num_ranges == range.id) --log().num_ranges;  // ids depend on what is kept alone
}

// Whether a recording's ranges are those from this place on: it must not move.
bool Observer::begins_at(std::size_t range) const {
    return std::any_of(running_.begin(), running_.end(),
                       [&](const auto& one) { return one.second.ranges == range; });
}

void Observer::on_memory(std::uint64_t address, std::int64_t bytes, std::int64_t total,
                         std::int32_t core) {
    if (!is_active()) return;
    const std::int64_t now_ns = Timeline::instance().now_ns();
    std::lock_guard lock(log().mutex);
    log().kept.memory.push_back({now_ns, address, bytes, total, core, this_thread()});
}

}  // namespace trnscope::sim
