#pragma once
// What is known of an op before it is called: which arguments it writes, and how it behaves.

#include <memory>
#include <string>
#include <unordered_map>

#include "fingerprint.h"
#include "substitutes.h"
#include "torch_headers.h"

namespace trnscope::sim {

struct Entry;

struct ArgumentInfo {
    std::string name;
    bool is_written = false;
    bool is_out = false;            // of an out= overload
    bool is_runtime_value = false;  // a scalar that the program reads, not one that it is built for
    bool is_dtype = false;
    bool is_hidden = false;  // device, layout, generator: no attribute of the op
};

struct OpInfo {
    explicit OpInfo(const c10::OperatorHandle& handle);

    c10::OperatorHandle op;
    std::string name;  // aten::add, without the overload
    std::vector<ArgumentInfo> arguments;
    int generator_argument = -1;
    bool depends_on_data = false;  // what it returns depends on values
    bool changes_shape = false;    // only the shape of its argument: squeeze_
    bool may_mix_devices = false;  // takes index tensors of the host
    bool is_fill = false;          // a memset
    Substitute substitute = nullptr;
    std::unordered_map<Fingerprint, std::unique_ptr<Entry>, FingerprintHash> entries;
};

OpInfo& op_info(const c10::OperatorHandle& op);

}  // namespace trnscope::sim
