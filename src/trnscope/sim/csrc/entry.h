#pragma once
// What is kept for one signature of an op: the shapes of its results and the cost of its execution.

#include "execution.h"
#include "plan.h"

namespace trnscope::sim {

struct Entry {
    Plan plan;
    Execution* execution = nullptr;  // null: the device does nothing
};

}  // namespace trnscope::sim
