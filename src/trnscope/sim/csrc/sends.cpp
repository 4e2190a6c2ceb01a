#include "sends.h"

#include "worker.h"

namespace trnscope::sim {
namespace {

// Raised at the program's next wait, as any error of the worker's.
void raise_later(std::exception_ptr error) {
    Worker::instance().submit("send",
                              [error = std::move(error)] { std::rethrow_exception(error); });
}

}  // namespace

Sends& Sends::instance() {
    static Sends* sends = new Sends();  // its thread lives until the process ends
    return *sends;
}

void Sends::begin(const c10::intrusive_ptr<c10d::Backend>& gloo, at::Tensor values, int target,
                  int tag) {
    Message message{gloo, {std::move(values)}, {}};
    message.work = gloo->send(message.values, target, tag);
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
    messages_.push_back(std::move(message));
    changed_.notify_all();
}

void Sends::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return messages_.empty(); });
}

void Sends::loop() {
    for (;;) {
        c10::intrusive_ptr<c10d::Work> oldest;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return !messages_.empty(); });
            oldest = messages_.front().work;
        }
        try {
            oldest->wait();
        } catch (...) {
            raise_later(std::current_exception());
        }
        Message done;
        {
            std::lock_guard lock(mutex_);
            done = std::move(messages_.front());
            messages_.pop_front();
            changed_.notify_all();
        }
    }
}

}  // namespace trnscope::sim
