#pragma once
// A call of an op, but for the tensors' values, in 128 bits: equal calls have equal results' shapes
// and equal costs.

#include <cstdint>

#include "arguments.h"

namespace trnscope::sim {

struct OpInfo;

struct Fingerprint {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Fingerprint&) const = default;
};

struct FingerprintHash {
    std::size_t operator()(const Fingerprint& fingerprint) const { return fingerprint.low; }
};

Fingerprint fingerprint(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                        const Arguments& arguments);

}  // namespace trnscope::sim
