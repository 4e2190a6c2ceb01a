// Python names of what the analyses need in native code.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "bindings.h"
#include "call_survey.h"
#include "call_tree.h"
#include "text_search.h"

namespace nb = nanobind;
using namespace trnscope;

namespace {

nb::tuple nest_calls_py(In<int64_t> start_ns, In<int64_t> dur_ns) {
    require(start_ns.size() == dur_ns.size(), "start and dur differ in length");
    CallTree tree =
        without_gil([&] { return nest_calls(start_ns.data(), dur_ns.data(), start_ns.size()); });
    return nb::make_tuple(to_numpy(std::move(tree.parent)), to_numpy(std::move(tree.self_ns)));
}

auto kinds_present(In<uint8_t> kind) {
    std::vector<uint8_t> present(256, 0);
    const uint8_t* kinds = kind.data();
    for (size_t i = 0, n = kind.size(); i < n; ++i) present[kinds[i]] = 1;
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
    const bool ok = without_gil([&] { return survey_calls(in, keys, &survey); });
    require(ok, "parent or name out of range");
    return nb::make_tuple(
        to_numpy(std::move(survey.key)), to_numpy(std::move(survey.count)),
        to_numpy(std::move(survey.total_ns)), to_numpy(std::move(survey.self_ns)),
        to_numpy(std::move(survey.overlapping)), to_numpy(std::move(survey.same_name)),
        to_numpy(std::move(survey.same_above)), to_numpy(std::move(survey.empty)));
}

// Rows first ... of one track, as whole columns: (rows, self_ns) where own time is another.
nb::tuple differing_self_times_py(In<uint32_t> parent, In<int64_t> start_ns, In<int64_t> dur_ns,
                                  In<int64_t> self_ns, uint32_t first) {
    for (size_t size : {start_ns.size(), dur_ns.size(), self_ns.size()}) {
        require(size == parent.size(), "columns differ in length");
    }
    const TrackRows track{parent.data(),  start_ns.data(), dur_ns.data(),
                          self_ns.data(), first,           parent.size()};
    SelfTimes found;
    const bool ok = without_gil([&] { return differing_self_times(track, &found); });
    require(ok, "parent out of range");
    return nb::make_tuple(to_numpy(std::move(found.row)), to_numpy(std::move(found.self_ns)));
}

auto outer_calls_py(In<uint32_t> key, In<uint32_t> above, uint32_t num_call_keys) {
    require(key.size() == above.size(), "columns differ in length");
    return to_numpy(without_gil(
        [&] { return outer_calls(key.data(), above.data(), key.size(), num_call_keys); }));
}

// Adds each work to the group of its call and of all slices above; those to skip and those
// whose key is no group get none.
auto charge_upwards(In<uint32_t> above, In<uint32_t> key, In<uint8_t> skip, In<uint32_t> calls,
                    In<int64_t> work_ns, size_t num_groups) {
    require(key.size() == above.size() && skip.size() == above.size(), "columns differ in length");
    require(calls.size() == work_ns.size(), "calls and work differ in length");
    std::vector<int64_t> total_ns(num_groups, 0);
    const bool ok = without_gil([&] {
        const uint32_t *up = above.data(), *group = key.data();
        const size_t num_slices = above.size();
        for (size_t i = 0; i < calls.size(); ++i) {
            uint32_t at = calls(i), last = at;
            size_t steps = 0;
            do {
                if (at >= num_slices || ++steps > num_slices) return false;
                if (group[at] < num_groups && !skip(at)) total_ns[group[at]] += work_ns(i);
                last = std::exchange(at, up[at]);
            } while (at != last);
        }
        return true;
    });
    require(ok, "slice id out of range, or slices above each other");
    return to_numpy(std::move(total_ns));
}

// Rows whose key is wanted, rising.
auto find_keys(In<uint32_t> keys, In<uint8_t> wanted) {
    std::vector<uint32_t> rows;
    {
        nb::gil_scoped_release release;
        const uint32_t* key = keys.data();
        const uint8_t* is_wanted = wanted.data();
        const size_t num_keys = wanted.size();
        for (size_t i = 0, n = keys.size(); i < n; ++i) {
            if (key[i] < num_keys && is_wanted[key[i]]) rows.push_back(static_cast<uint32_t>(i));
        }
    }
    return to_numpy(std::move(rows));
}

// Calls visit(row, name) for each row of the wanted kinds.
template <typename Visit>
void each_of_kind(In<uint32_t> name, In<uint8_t> kind, In<uint8_t> wanted_kind,
                  const Visit& visit) {
    require(name.size() == kind.size() && wanted_kind.size() == 256, "columns differ in length");
    nb::gil_scoped_release release;
    const uint32_t* names = name.data();
    const uint8_t* kinds = kind.data();
    const uint8_t* wanted = wanted_kind.data();
    for (size_t i = 0, n = name.size(); i < n; ++i) {
        if (wanted[kinds[i]]) visit(static_cast<uint32_t>(i), names[i]);
    }
}

// Which names slices of some kinds have: a flag a name.
auto names_present(In<uint32_t> name, In<uint8_t> kind, In<uint8_t> wanted_kind, size_t num_names) {
    std::vector<uint8_t> present(num_names, 0);
    bool ok = true;
    each_of_kind(name, kind, wanted_kind, [&](uint32_t, uint32_t id) {
        ok &= id < num_names;
        if (id < num_names) present[id] = 1;
    });
    require(ok, "name out of range");
    return to_numpy(std::move(present));
}

// Rows of some kinds whose name is wanted, rising.
auto find_names(In<uint32_t> name, In<uint8_t> kind, In<uint8_t> wanted_kind,
                In<uint8_t> wanted_name) {
    std::vector<uint32_t> rows;
    const uint8_t* wanted = wanted_name.data();
    const size_t num_names = wanted_name.size();
    each_of_kind(name, kind, wanted_kind, [&](uint32_t row, uint32_t id) {
        if (id < num_names && wanted[id]) rows.push_back(row);
    });
    return to_numpy(std::move(rows));
}

// Which of the texts hold one of the words: a flag a text.
auto texts_with_py(In<int64_t> ends, In<uint8_t> bytes, In<uint8_t> wanted,
                   const std::vector<std::string>& words) {
    require(wanted.size() == ends.size(), "a flag a text is needed");
    int64_t before = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
        require(ends.data()[i] >= before, "ends must rise");
        before = ends.data()[i];
    }
    require(static_cast<size_t>(before) <= bytes.size(), "an end beyond the bytes");
    for (const std::string& word : words) require(!word.empty(), "an empty word");
    return to_numpy(without_gil([&] {
        return trnscope::texts_with(ends.data(), wanted.data(), ends.size(),
                                    reinterpret_cast<const char*>(bytes.data()), words);
    }));
}

}  // namespace

void bind_analysis(nb::module_& m) {
    m.def("nest_calls", &nest_calls_py, nb::arg("start_ns"), nb::arg("dur_ns"));
    m.def("kinds_present", &kinds_present, nb::arg("kind"));
    m.def("survey_calls", &survey_calls_py, nb::arg("name"), nb::arg("kind"), nb::arg("parent"),
          nb::arg("depth"), nb::arg("dur_ns"), nb::arg("self_ns"), nb::arg("first_key"),
          nb::arg("num_call_keys"), nb::arg("num_keys"));
    m.def("differing_self_times", &differing_self_times_py, nb::arg("parent"), nb::arg("start_ns"),
          nb::arg("dur_ns"), nb::arg("self_ns"), nb::arg("first"));
    m.def("outer_calls", &outer_calls_py, nb::arg("key"), nb::arg("above"),
          nb::arg("num_call_keys"));
    m.def("charge_upwards", &charge_upwards, nb::arg("above"), nb::arg("key"), nb::arg("skip"),
          nb::arg("calls"), nb::arg("work_ns"), nb::arg("num_groups"));
    m.def("find_keys", &find_keys, nb::arg("keys"), nb::arg("wanted"));
    m.def("names_present", &names_present, nb::arg("name"), nb::arg("kind"), nb::arg("wanted_kind"),
          nb::arg("num_names"));
    m.def("find_names", &find_names, nb::arg("name"), nb::arg("kind"), nb::arg("wanted_kind"),
          nb::arg("wanted_name"));
    m.def("texts_with", &texts_with_py, nb::arg("ends"), nb::arg("bytes"), nb::arg("wanted"),
          nb::arg("words"));
}
