#pragma once
// Messages on their way: a send ends when its receiver takes it, which may be after the next op.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "torch_headers.h"

namespace trnscope::sim {

// Two ranks that send to one another before they receive would wait for ever if the worker waited
// for each send. So a send is begun there, with a copy of the values, and waited for here.
class Sends {
  public:
    static Sends& instance();

    // Called on the worker.
    void begin(const c10::intrusive_ptr<c10d::Backend>& gloo, at::Tensor values, int target,
               int tag);
    // Until all messages have arrived.
    void wait();

  private:
    struct Message {
        c10::intrusive_ptr<c10d::Backend> gloo;
        std::vector<at::Tensor> values;
        c10::intrusive_ptr<c10d::Work> work;
    };
    void loop();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Message> messages_;
    std::thread thread_;
};

}  // namespace trnscope::sim
