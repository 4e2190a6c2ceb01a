#pragma once
// What a call returns, known before anything is computed: torch's meta kernels say it.

#include "arguments.h"

namespace trnscope::sim {

struct OpInfo;

struct OutputPlan {
    enum Kind : std::uint8_t { kFresh, kArgument, kView, kConstant } kind = kFresh;
    std::int32_t tensor = 0;  // of Arguments::tensors, for kArgument and kView
    caffe2::TypeMeta dtype;
    c10::DimVector sizes;
    c10::DimVector strides;
    std::int64_t offset = 0;  // for kView: relative to the viewed tensor's
    bool is_conj = false;
    bool is_neg = false;
    c10::IValue constant;
};

struct ReturnPlan {
    bool is_list = false;
    std::int32_t num_outputs = 1;
};

// An argument whose shape the op changes: an out= tensor, squeeze_.
struct ReshapePlan {
    std::int32_t tensor = 0;
    c10::DimVector sizes;
    c10::DimVector strides;
};

struct Plan {
    bool is_known = false;  // false: the op must run before its results' shapes are known
    bool is_view = false;   // nothing is computed
    std::vector<ReturnPlan> returns;
    std::vector<OutputPlan> outputs;
    std::vector<ReshapePlan> reshapes;
};

// Whether what the call returns depends on values: nonzero; index, but only with a mask.
bool depends_on_data(const OpInfo& info, const Arguments& arguments);
Plan make_plan(const OpInfo& info, c10::ArrayRef<c10::IValue> values, const Arguments& arguments);

}  // namespace trnscope::sim
