// Python names of what the analyses need in native code.
#include "bindings.h"
#include "call_tree.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

nb::tuple nest_calls_py(In<int64_t> start_ns, In<int64_t> dur_ns) {
    if (start_ns.size() != dur_ns.size()) throw nb::value_error("start and dur differ in length");
    CallTree tree;
    {
        nb::gil_scoped_release release;
        tree = nest_calls(start_ns.data(), dur_ns.data(), start_ns.size());
    }
    return nb::make_tuple(to_numpy(std::move(tree.parent)), to_numpy(std::move(tree.self_ns)));
}

}  // namespace

void bind_analysis(nb::module_& m) {
    m.def("nest_calls", &nest_calls_py, nb::arg("start_ns"), nb::arg("dur_ns"));
}
