#pragma once
// Asks the cost model, in Python, what a new signature costs.

#include "execution.h"
#include "op_info.h"

namespace trnscope::sim {

enum class CopyDirection { kHostToDevice, kDeviceToHost, kDeviceToDevice };

// `outputs`: the tensors that the op returns, or writes where it returns none.
Execution& describe_op(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                       const std::vector<at::Tensor>& outputs);
// The copies of so many bytes; asked once for each size.
Execution& describe_copy(CopyDirection direction, std::int64_t bytes);

struct CollectiveCall {
    const char* kind;  // of CollectiveSpec
    std::int64_t bytes;
    int num_ranks;
    c10::ScalarType type;
};
Execution& describe_collective(const CollectiveCall& call);

// The Python object whose methods answer; null: everything takes no time.
void set_cost_source(void* python_object);

}  // namespace trnscope::sim
