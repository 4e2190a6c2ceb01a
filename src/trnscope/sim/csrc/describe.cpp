#include <torch/csrc/utils/pybind.h>

#include "torch_headers.h"
// after torch's
#include <map>

#include "describe.h"

namespace trnscope::sim {
namespace {

namespace py = pybind11;

PyObject* cost_source = nullptr;  // owned; lives until the process ends

const char* dtype_name(c10::ScalarType type) {
    switch (type) {
        case c10::kFloat:
            return "float32";
        case c10::kDouble:
            return "float64";
        case c10::kHalf:
            return "float16";
        case c10::kBFloat16:
            return "bfloat16";
        case c10::kLong:
            return "int64";
        case c10::kInt:
            return "int32";
        case c10::kShort:
            return "int16";
        case c10::kChar:
            return "int8";
        case c10::kByte:
            return "uint8";
        case c10::kBool:
            return "bool";
        case c10::kUInt16:
            return "uint16";
        case c10::kUInt32:
            return "uint32";
        case c10::kUInt64:
            return "uint64";
        case c10::kComplexFloat:
            return "complex64";
        case c10::kComplexDouble:
            return "complex128";
        case c10::kFloat8_e4m3fn:
            return "float8_e4m3fn";
        case c10::kFloat8_e5m2:
            return "float8_e5m2";
        default:
            return c10::toString(type);
    }
}

py::tuple to_tuple(c10::IntArrayRef values) {
    py::tuple result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) result[i] = py::int_(values[i]);
    return result;
}

// (shape, dtype, strides or None where contiguous)
py::object to_spec(const at::Tensor& tensor) {
    py::object strides = py::none();
    if (!tensor.is_contiguous()) strides = to_tuple(tensor.strides());
    return py::make_tuple(to_tuple(tensor.sizes()), dtype_name(tensor.scalar_type()), strides);
}

void add_inputs(py::list& inputs, const c10::IValue& value) {
    if (value.isTensorList() || value.isOptionalTensorList()) {
        for (const c10::IValue& item : value.toListRef()) add_inputs(inputs, item);
    } else if (value.isTensor() && value.toTensor().defined()) {
        inputs.append(to_spec(value.toTensor()));
    } else {
        inputs.append(py::none());
    }
}

bool holds_tensors(const c10::Argument& argument) {
    c10::TypePtr type = argument.type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    if (const auto list = type->cast<c10::ListType>()) type = list->getElementType();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    return type->kind() == c10::TypeKind::TensorType;
}

py::object to_attribute(const c10::IValue& value, bool is_dtype) {
    if (value.isInt() && is_dtype) {
        return py::str(dtype_name(static_cast<c10::ScalarType>(value.toInt())));
    }
    if (value.isInt()) return py::int_(value.toInt());
    if (value.isDouble()) return py::float_(value.toDouble());
    if (value.isBool()) return py::bool_(value.toBool());
    if (value.isString()) return py::str(value.toStringRef());
    if (!value.isList()) return py::none();
    const auto items = value.toListRef();
    py::tuple result(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) result[i] = to_attribute(items[i], false);
    return result;
}

struct Description {
    py::list inputs;
    py::list outputs;
    py::list attributes;
};

Description to_description(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                           const std::vector<at::Tensor>& outputs) {
    Description description;
    const auto& schema = info.op.schema().arguments();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const ArgumentInfo& argument = info.arguments[i];
        if (holds_tensors(schema[i])) {
            if (!argument.is_out) add_inputs(description.inputs, values[i]);
        } else if (!argument.is_hidden && !values[i].isNone()) {
            description.attributes.append(
                py::make_tuple(argument.name, to_attribute(values[i], argument.is_dtype)));
        }
    }
    for (const at::Tensor& output : outputs) description.outputs.append(to_spec(output));
    return description;
}

std::int64_t bytes_of_inputs(const OpInfo& info, c10::ArrayRef<c10::IValue> values) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (info.arguments[i].is_out) continue;
        each_tensor(values[i], [&](const at::Tensor& tensor) { bytes += tensor.nbytes(); });
    }
    return bytes;
}

std::int64_t bytes_of_all(const std::vector<at::Tensor>& tensors) {
    std::int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
    return bytes;
}

// (host_ns, device_ns, compile_ns, is_on_cpu), as CostSource in device_costs.py answers.
using Answer = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>;

Answer ask_op(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
              const std::vector<at::Tensor>& outputs, std::uint32_t signature) {
    py::gil_scoped_acquire gil;
    const Description description = to_description(info, values, outputs);
    return py::handle(cost_source)
        .attr("op")(signature, info.name, description.inputs, description.outputs,
                    description.attributes)
        .cast<Answer>();
}

LaunchCost to_cost(const Answer& answer) {
    return {std::get<0>(answer), std::get<1>(answer), std::get<2>(answer)};
}

const char* direction_name(CopyDirection direction) {
    switch (direction) {
        case CopyDirection::kHostToDevice:
            return "h2d";
        case CopyDirection::kDeviceToHost:
            return "d2h";
        default:
            return "d2d";
    }
}

LaunchKind kind_of(CopyDirection direction) {
    switch (direction) {
        case CopyDirection::kHostToDevice:
            return LaunchKind::kCopyHostToDevice;
        case CopyDirection::kDeviceToHost:
            return LaunchKind::kCopyDeviceToHost;
        default:
            return LaunchKind::kCopyDeviceToDevice;
    }
}

LaunchCost ask_copy(CopyDirection direction, std::int64_t bytes, std::uint32_t signature) {
    py::gil_scoped_acquire gil;
    return to_cost(py::handle(cost_source)
                       .attr("copy")(signature, direction_name(direction), bytes)
                       .cast<Answer>());
}

Execution& new_collective(const CollectiveCall& call) {
    Execution& execution = Executions::instance().add(call.kind, LaunchKind::kCollective, {});
    execution.bytes = call.bytes;
    if (cost_source == nullptr) return execution;
    py::gil_scoped_acquire gil;
    execution.cost = to_cost(py::handle(cost_source)
                                 .attr("collective")(execution.signature, call.kind, call.bytes,
                                                     call.num_ranks, dtype_name(call.type))
                                 .cast<Answer>());
    return execution;
}

Execution& new_copy(CopyDirection direction, std::int64_t bytes) {
    Execution& execution = Executions::instance().add(
        std::string("Memcpy ") + direction_name(direction), kind_of(direction), {});
    execution.bytes = bytes;
    if (cost_source != nullptr) execution.cost = ask_copy(direction, bytes, execution.signature);
    return execution;
}

}  // namespace

Execution& describe_op(const OpInfo& info, c10::ArrayRef<c10::IValue> values,
                       const std::vector<at::Tensor>& outputs) {
    const LaunchKind kind = info.is_fill ? LaunchKind::kMemset : LaunchKind::kKernel;
    Execution& execution = Executions::instance().add(info.name, kind, {});
    execution.input_bytes = bytes_of_inputs(info, values);
    execution.output_bytes = bytes_of_all(outputs);
    execution.bytes = execution.input_bytes + execution.output_bytes;
    if (cost_source == nullptr) return execution;
    const Answer answer = ask_op(info, values, outputs, execution.signature);
    execution.cost = to_cost(answer);
    execution.is_on_cpu = std::get<3>(answer);
    if (!execution.is_on_cpu) return execution;
    execution.copy_in = describe_copy(CopyDirection::kDeviceToHost, execution.input_bytes).cost;
    execution.copy_out = describe_copy(CopyDirection::kHostToDevice, execution.output_bytes).cost;
    return execution;
}

Execution& describe_copy(CopyDirection direction, std::int64_t bytes) {
    static auto* mutex = new std::mutex();
    static auto* known = new std::map<std::pair<CopyDirection, std::int64_t>, Execution*>();
    {
        std::lock_guard lock(*mutex);
        const auto found = known->find({direction, bytes});
        if (found != known->end()) return *found->second;
    }
    Execution& execution = new_copy(direction, bytes);
    std::lock_guard lock(*mutex);
    return *known->emplace(std::pair(direction, bytes), &execution).first->second;
}

Execution& describe_collective(const CollectiveCall& call) {
    static auto* mutex = new std::mutex();
    static auto* known = new std::map<std::string, Execution*>();
    const std::string key =
        c10::str(call.kind, " ", call.bytes, " ", call.num_ranks, " ", dtype_name(call.type));
    {
        std::lock_guard lock(*mutex);
        const auto found = known->find(key);
        if (found != known->end()) return *found->second;
    }
    Execution& execution = new_collective(call);
    std::lock_guard lock(*mutex);
    return *known->emplace(key, &execution).first->second;
}

void set_cost_source(void* python_object) {
    Py_XINCREF(static_cast<PyObject*>(python_object));
    Py_XDECREF(cost_source);
    cost_source = static_cast<PyObject*>(python_object);
}

}  // namespace trnscope::sim
