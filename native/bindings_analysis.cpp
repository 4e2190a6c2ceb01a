// Python names of what the analyses need in native code.
#include <algorithm>

#include "bindings.h"
#include "call_survey.h"
#include "call_tree.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

void require(bool ok, const char* what) {
    if (!ok) throw nb::value_error(what);
}

nb::tuple nest_calls_py(In<int64_t> start_ns, In<int64_t> dur_ns) {
    require(start_ns.size() == dur_ns.size(), "start and dur differ in length");
    CallTree tree;
    {
        nb::gil_scoped_release release;
        tree = nest_calls(start_ns.data(), dur_ns.data(), start_ns.size());
    }
    return nb::make_tuple(to_numpy(std::move(tree.parent)), to_numpy(std::move(tree.self_ns)));
}

nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> kinds_present(In<uint8_t> kind) {
    std::vector<uint8_t> present(256, 0);
    for (size_t i = 0; i < kind.size(); ++i) present[kind(i)] = 1;
    return to_numpy(std::move(present));
}

nb::tuple survey_calls_py(In<uint32_t> name, In<uint8_t> kind, In<uint32_t> parent,
                          In<uint16_t> depth, In<int64_t> dur_ns, In<int64_t> self_ns,
                          In<uint32_t> first_key, uint32_t num_call_keys, size_t num_keys) {
    for (size_t size : {kind.size(), parent.size(), depth.size(), dur_ns.size(), self_ns.size()}) {
        require(size == name.size(), "columns differ in length");
    }
    require(first_key.size() == 256, "a key range for each of 256 kinds is needed");
    const SliceColumns in{name.data(),   kind.data(),    parent.data(), depth.data(),
                          dur_ns.data(), self_ns.data(), name.size()};
    KeyRanges keys{};
    std::copy_n(first_key.data(), 256, keys.first);
    keys.num_keys = num_keys;
    keys.num_call_keys = num_call_keys;
    CallSurvey survey;
    bool ok = false;
    {
        nb::gil_scoped_release release;
        ok = survey_calls(in, keys, &survey);
    }
    require(ok, "parent or name out of range");
    return nb::make_tuple(to_numpy(std::move(survey.key)), to_numpy(std::move(survey.count)),
                          to_numpy(std::move(survey.total_ns)), to_numpy(std::move(survey.self_ns)),
                          to_numpy(std::move(survey.overlapping)),
                          to_numpy(std::move(survey.same_name)), to_numpy(std::move(survey.empty)));
}

}  // namespace

void bind_analysis(nb::module_& m) {
    m.def("nest_calls", &nest_calls_py, nb::arg("start_ns"), nb::arg("dur_ns"));
    m.def("kinds_present", &kinds_present, nb::arg("kind"));
    m.def("survey_calls", &survey_calls_py, nb::arg("name"), nb::arg("kind"), nb::arg("parent"),
          nb::arg("depth"), nb::arg("dur_ns"), nb::arg("self_ns"), nb::arg("first_key"),
          nb::arg("num_call_keys"), nb::arg("num_keys"));
}
