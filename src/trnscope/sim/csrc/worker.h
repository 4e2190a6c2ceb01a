#pragma once
// The thread that computes the numbers, in the order in which the program asked for them.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace trnscope::sim {

class Worker {
  public:
    static Worker& instance();

    // Runs `function` after everything submitted before; `name` must outlive it.
    template <typename Function>
    void submit(const char* name, Function&& function) {
        push(std::make_unique<Closure<std::decay_t<Function>>>(name,
                                                               std::forward<Function>(function)));
    }
    template <typename Function>
    void run(const char* name, Function&& function) {
        submit(name, std::forward<Function>(function));
        drain();
    }
    // Waits until everything submitted so far is done; throws the first error since the last call.
    void drain();
    // Ends the thread; a later submit starts it again.
    void stop();

  private:
    struct Task {
        explicit Task(const char* task_name) : name(task_name) {}
        virtual ~Task() = default;
        virtual void run() = 0;
        const char* name;
        int num_threads = 1;
    };
    template <typename Function>
    struct Closure final : Task {
        Closure(const char* task_name, Function task)
            : Task(task_name), function(std::move(task)) {}
        void run() override { function(); }
        Function function;
    };
    using Batch = std::deque<std::unique_ptr<Task>>;

    void push(std::unique_ptr<Task> task);
    void start();
    void wait_for(std::uint64_t ticket);
    void wait_for_room();
    void loop();
    bool take(Batch& batch);
    void run_task(Task& task);
    void keep_error();
    void finish_one();
    void throw_error();
    static void become_silent();

    std::mutex mutex_;
    std::condition_variable has_work_;
    std::condition_variable has_progress_;
    Batch queue_;
    std::atomic<std::uint64_t> num_submitted_{0};
    std::atomic<std::uint64_t> num_done_{0};
    std::atomic<int> num_waiting_{0};
    std::atomic<bool> has_error_{false};
    bool is_asleep_ = false;
    bool must_stop_ = false;
    std::exception_ptr error_;
    std::unique_ptr<std::thread> thread_;
};

}  // namespace trnscope::sim
