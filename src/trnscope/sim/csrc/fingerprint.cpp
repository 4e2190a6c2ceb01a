#include "fingerprint.h"

#include <bit>

#include "op_info.h"

namespace trnscope::sim {
namespace {

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Two independent multiply-and-fold hashes.
class Mixer {
  public:
    void add(std::uint64_t value) {
        result_.low = fold(result_.low ^ value, 0x9e3779b97f4a7c15ULL);
        result_.high = fold(result_.high + value, 0xd6e8feb86659fd93ULL) ^ std::rotl(value, 29);
    }
    void add_all(c10::IntArrayRef values) {
        add(values.size());
        for (const std::int64_t value : values) add(static_cast<std::uint64_t>(value));
    }
    void add_text(std::string_view text) {
        add(text.size());
        for (const char letter : text) add(static_cast<unsigned char>(letter));
    }
    Fingerprint result() const { return result_; }

  private:
    Fingerprint result_{0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL};
};

enum Tag : std::uint64_t {
    kNothing = 1,
    kTensor,
    kInt,
    kFloat,
    kBool,
    kComplex,
    kText,
    kList,
    kOther,
};

void add_tensor(Mixer& mixer, const at::Tensor& tensor) {
    mixer.add(kTensor);
    if (!tensor.defined()) return;
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    const auto bits = (static_cast<std::uint64_t>(tensor.scalar_type()) << 8) |
                      (static_cast<std::uint64_t>(tensor.device().type()) << 16) |
                      (impl.is_wrapped_number() ? 1U : 0U) | (tensor.is_conj() ? 2U : 0U) |
                      (tensor.is_neg() ? 4U : 0U);
    mixer.add(bits);
    mixer.add_all(tensor.sizes());
    mixer.add_all(tensor.strides());
}

void add_number(Mixer& mixer, std::uint64_t tag, std::uint64_t bits, bool is_runtime_value) {
    mixer.add(tag);
    if (!is_runtime_value) mixer.add(bits);
}

void add_value(Mixer& mixer, const c10::IValue& value, const ArgumentInfo& info);

void add_list(Mixer& mixer, const c10::IValue& value, const ArgumentInfo& info) {
    const auto items = value.toListRef();
    mixer.add(kList);
    mixer.add(items.size());
    for (const c10::IValue& item : items) add_value(mixer, item, info);
}

void add_value(Mixer& mixer, const c10::IValue& value, const ArgumentInfo& info) {
    if (value.isTensor()) return add_tensor(mixer, value.toTensor());
    if (value.isNone() || value.isGenerator()) return mixer.add(kNothing);
    if (value.isInt()) {
        const auto bits = static_cast<std::uint64_t>(value.toInt());
        return add_number(mixer, kInt, bits, info.is_runtime_value);
    }
    if (value.isDouble()) {
        const auto bits = std::bit_cast<std::uint64_t>(value.toDouble());
        return add_number(mixer, kFloat, bits, info.is_runtime_value);
    }
    if (value.isBool()) return add_number(mixer, kBool, value.toBool() ? 1 : 0, false);
    if (value.isList()) return add_list(mixer, value, info);
    if (value.isString()) {
        mixer.add(kText);
        return mixer.add_text(value.toStringRef());
    }
    mixer.add(value.isComplexDouble() ? kComplex : kOther);
}

// Which arguments are the same tensor, or share memory.
void add_identity(Mixer& mixer, const Arguments& arguments) {
    const auto& tensors = arguments.tensors;
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        std::uint64_t same = 0;
        for (std::size_t j = 0; j < i && same == 0; ++j) {
            if (tensors[i].tensor->is_same(*tensors[j].tensor))
                same = 2 * j + 2;
            else if (tensors[i].tensor->is_alias_of(*tensors[j].tensor))
                same = 2 * j + 3;
        }
        mixer.add(same);
    }
}

}  // namespace

Fingerprint fingerprint(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                        const Arguments& arguments) {
    Mixer mixer;
    for (std::size_t i = 0; i < values.size(); ++i) {
        add_value(mixer, values[i], info.arguments[i]);
    }
    add_identity(mixer, arguments);
    return mixer.result();
}

}  // namespace trnscope::sim
