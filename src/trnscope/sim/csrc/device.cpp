#include "device.h"

#include <c10/util/Exception.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "worker.h"

namespace trnscope::sim {
namespace {

thread_local std::int32_t core_here = 0;
thread_local std::vector<std::int64_t> streams_here;  // by core; 0 is the default stream

void check_core(std::int32_t core) {
    TORCH_CHECK(core >= 0 && core < num_cores(), "neuron:", core, " does not exist; there are ",
                num_cores(), " simulated cores");
}

}  // namespace

std::int32_t num_cores() {
    return Timeline::instance().num_cores();
}

std::int32_t current_core() {
    return core_here;
}

void set_current_core(std::int32_t core) {
    if (core == core_here) return;
    check_core(core);
    core_here = core;
}

std::int64_t current_stream(std::int32_t core) {
    const auto place = static_cast<std::size_t>(core);
    return place < streams_here.size() ? streams_here[place] : 0;
}

void set_current_stream(std::int32_t core, std::int64_t stream) {
    check_core(core);
    const auto place = static_cast<std::size_t>(core);
    if (place >= streams_here.size()) streams_here.resize(place + 1, 0);
    streams_here[place] = stream;
}

std::int64_t new_stream() {
    static std::atomic<std::int64_t> last_stream{0};
    return ++last_stream;
}

std::uint64_t thread_id() {
    static thread_local const auto id = static_cast<std::uint64_t>(syscall(SYS_gettid));
    return id;
}

std::int64_t real_now_ns() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

Waiter waiter_here() {
    return {thread_id(), real_now_ns()};
}

void synchronize_core(std::int32_t core) {
    Timeline::instance().wait_core(core, waiter_here());
    Worker::instance().drain();
}

void synchronize_stream(std::int32_t core, std::int64_t stream, WaitKind kind) {
    Timeline::instance().wait_stream(core, stream, kind, waiter_here());
    Worker::instance().drain();
}

}  // namespace trnscope::sim
