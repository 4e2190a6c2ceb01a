#include "op_info.h"

#include <mutex>
#include <set>

#include "entry.h"

namespace trnscope::sim {
namespace {

const std::set<std::string>& index_ops() {
    static const std::set<std::string> names{"aten::index",         "aten::index_put_",
                                             "aten::index_put",     "aten::_index_put_impl_",
                                             "aten::_unsafe_index", "aten::_unsafe_index_put"};
    return names;
}

// Ops whose program depends on the value of a number, not only on its type.
bool is_built_for_numbers(const std::string& name) {
    static const std::set<std::string> names{
        "aten::pow",     "aten::pow_",   "aten::float_power", "aten::linalg_vector_norm",
        "aten::norm",    "aten::arange", "aten::range",       "aten::linspace",
        "aten::logspace"};
    return names.contains(name);
}

bool is_hidden(const c10::Argument& argument) {
    switch (argument.real_type()->kind()) {
        case c10::TypeKind::DeviceObjType:
        case c10::TypeKind::LayoutType:
        case c10::TypeKind::MemoryFormatType:
        case c10::TypeKind::GeneratorType:
        case c10::TypeKind::StreamObjType:
            return true;
        default:
            return argument.name() == "pin_memory" || argument.name() == "non_blocking";
    }
}

c10::TypePtr without_optional(c10::TypePtr type) {
    const auto optional = type->cast<c10::OptionalType>();
    return optional ? optional->getElementType() : type;
}

c10::TypePtr item_type(const c10::TypePtr& type) {
    const c10::TypePtr plain = without_optional(type);
    const auto list = plain->cast<c10::ListType>();
    return list ? list->getElementType() : plain;
}

ArgumentInfo describe(const c10::Argument& argument, bool is_built_for_numbers) {
    ArgumentInfo info;
    info.name = argument.name();
    info.is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    info.is_out = argument.is_out();
    const c10::TypeKind kind = item_type(argument.real_type())->kind();
    info.is_runtime_value = !is_built_for_numbers &&
                            (kind == c10::TypeKind::NumberType || kind == c10::TypeKind::FloatType);
    info.is_dtype = kind == c10::TypeKind::ScalarTypeType;
    info.is_hidden = is_hidden(argument);
    return info;
}

bool is_generator(const c10::Argument& argument) {
    return without_optional(argument.type())->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace

OpInfo::OpInfo(const c10::OperatorHandle& handle) : op(handle), name(handle.schema().name()) {
    const bool built_for_numbers = is_built_for_numbers(name);
    for (const c10::Argument& argument : op.schema().arguments()) {
        if (is_generator(argument)) generator_argument = static_cast<int>(arguments.size());
        arguments.push_back(describe(argument, built_for_numbers));
    }
    depends_on_data =
        op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
    changes_shape = op.hasTag(at::Tag::inplace_view);
    may_mix_devices = index_ops().contains(name);
    is_fill = name == "aten::zero_" || name == "aten::fill_";
    substitute = find_substitute(name);
}

OpInfo& op_info(const c10::OperatorHandle& op) {
    static auto* mutex = new std::mutex();
    static auto* infos = new std::unordered_map<const void*, std::unique_ptr<OpInfo>>();
    std::lock_guard lock(*mutex);
    std::unique_ptr<OpInfo>& info = (*infos)[&op.schema()];
    if (info == nullptr) info = std::make_unique<OpInfo>(op);
    return *info;
}

}  // namespace trnscope::sim
