#include <Python.h>

#include "torch_headers.h"
// after torch's, which define what it needs
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <chrono>

#include "settings.h"
#include "worker.h"

namespace trnscope::sim {
namespace {

constexpr std::uint64_t kMaxAhead = 4096;  // tasks that may wait; each keeps its inputs alive
constexpr int kSpins = 2000;               // about 20 us: shorter than to sleep and to be woken
// To be woken for every op costs the caller more than the op. So a worker that has just been busy
// looks for work by itself every now and then, and is woken for a batch or by who needs a value.
constexpr std::size_t kBatch = 32;
constexpr auto kDoze = std::chrono::milliseconds(1);
constexpr int kDozes = 100;

bool is_fast_asleep = false;  // under the worker's lock: it must be woken even for one task

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Other Python threads, and kernels written in Python, go on while this thread waits.
class ReleasedGil {
  public:
    ReleasedGil() : state_(PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}
    ~ReleasedGil() {
        if (state_ != nullptr) PyEval_RestoreThread(state_);
    }
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;

  private:
    PyThreadState* state_;
};

}  // namespace

Worker& Worker::instance() {
    static Worker* worker = new Worker();
    return *worker;
}

void Worker::push(std::unique_ptr<Task> task) {
    TORCH_CHECK(
        !settings().in_bad_fork,
        "neuron cannot be used again in a forked process; start it with the 'spawn' method");
    task->num_threads = at::get_num_threads();
    if (num_submitted_ - num_done_ > kMaxAhead) wait_for_room();
    bool must_wake = false;
    {
        std::lock_guard lock(mutex_);
        if (thread_ == nullptr) start();
        queue_.push_back(std::move(task));
        ++num_submitted_;
        must_wake = is_asleep_ && (is_fast_asleep || queue_.size() >= kBatch);
    }
    if (must_wake) has_work_.notify_one();
    if (settings().blocking) drain();
}

void Worker::start() {
    must_stop_ = false;
    thread_ = std::make_unique<std::thread>([this] { loop(); });
}

void Worker::wait_for_room() {
    ReleasedGil released;
    wait_for(num_submitted_ - kMaxAhead / 2);
}

void Worker::wait_for(std::uint64_t ticket) {
    bool must_wake = false;
    {
        std::lock_guard lock(mutex_);
        must_wake = is_asleep_;
    }
    if (must_wake) has_work_.notify_one();
    for (int i = 0; i < kSpins; ++i) {
        if (num_done_ >= ticket) return;
        pause();
    }
    ++num_waiting_;
    std::unique_lock lock(mutex_);
    has_progress_.wait(lock, [&] { return num_done_ >= ticket; });
    --num_waiting_;
}

void Worker::drain() {
    const std::uint64_t ticket = num_submitted_;
    if (num_done_ < ticket) {
        ReleasedGil released;
        wait_for(ticket);
    }
    if (has_error_) throw_error();
}

void Worker::throw_error() {
    std::exception_ptr error;
    {
        std::lock_guard lock(mutex_);
        std::swap(error, error_);
        has_error_ = false;
    }
    if (error != nullptr) std::rethrow_exception(error);
}

bool Worker::take(Batch& batch) {
    for (int i = 0; i < kSpins && num_submitted_ == num_done_; ++i) pause();
    std::unique_lock lock(mutex_);
    is_asleep_ = true;
    for (int i = 0; i < kDozes && queue_.empty() && !must_stop_; ++i) {
        has_work_.wait_for(lock, kDoze);
    }
    is_fast_asleep = true;
    has_work_.wait(lock, [&] { return !queue_.empty() || must_stop_; });
    is_asleep_ = is_fast_asleep = false;
    std::swap(batch, queue_);
    return !batch.empty();
}

void Worker::become_silent() {
    at::enableRecordFunction(false);  // the profiler must not see how the numbers are made
}

void Worker::loop() {
    become_silent();
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    Batch batch;
    while (take(batch)) {
        while (!batch.empty()) {
            run_task(*batch.front());
            batch.pop_front();
            finish_one();
        }
    }
}

void Worker::run_task(Task& task) {
    // Threads of OpenMP are set for each calling thread: use as many as the program's thread.
    if (at::get_num_threads() != task.num_threads) at::set_num_threads(task.num_threads);
    try {
        task.run();
    } catch (c10::Error& error) {
        error.add_context(std::string("raised by ") + task.name + " on the neuron device");
        keep_error();
    } catch (...) {
        keep_error();
    }
}

void Worker::keep_error() {
    std::lock_guard lock(mutex_);
    if (error_ == nullptr) error_ = std::current_exception();
    has_error_ = true;
}

void Worker::finish_one() {
    ++num_done_;
    if (num_waiting_ == 0) return;
    std::lock_guard lock(mutex_);
    has_progress_.notify_all();
}

void Worker::stop() {
    {
        ReleasedGil released;
        wait_for(num_submitted_);
        {
            std::lock_guard lock(mutex_);
            must_stop_ = true;
        }
        has_work_.notify_one();
        if (thread_ != nullptr) thread_->join();
    }
    thread_.reset();
}

}  // namespace trnscope::sim
