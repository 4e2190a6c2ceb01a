#include <Python.h>
// before all others
#include <frameobject.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "observer.h"
#include "python_calls.h"

namespace trnscope::sim {
namespace {

namespace py = pybind11;

constexpr std::size_t kMaxDepth = 2000;

// Used with the interpreter's lock alone.
struct Calls {
    int num_users = 0;
    PyThreadState* thread = nullptr;
    PyObject* module_call = nullptr;  // code of nn.Module.__call__; borrowed
    std::vector<PythonRange> open;    // of the functions that run, innermost last
    std::vector<py::object> kept;     // what the keys below must not outlive
    std::unordered_map<PyObject*, std::string> functions;  // by code
    std::unordered_map<PyObject*, std::string> modules;    // by object
    std::unordered_map<std::string, int> num_modules;      // by class
};

Calls& calls() {
    static Calls* calls = new Calls();
    return *calls;
}

std::string text_of(const py::handle& object) {
    return py::str(object).cast<std::string>();
}

// file(line): function
const std::string& function_name(const py::object& code) {
    auto& names = calls().functions;
    const auto found = names.find(code.ptr());
    if (found != names.end()) return found->second;
    calls().kept.push_back(code);
    return names
        .emplace(code.ptr(), text_of(code.attr("co_filename")) + "(" +
                                 text_of(code.attr("co_firstlineno")) +
                                 "): " + text_of(code.attr("co_name")))
        .first->second;
}

// nn.Module: Linear_0, numbered within the class by first call
const std::string& module_name(const py::object& module) {
    auto& names = calls().modules;
    const auto found = names.find(module.ptr());
    if (found != names.end()) return found->second;
    calls().kept.push_back(module);
    const std::string type = text_of(py::type::of(module).attr("__name__"));
    const int number = calls().num_modules[type]++;
    return names.emplace(module.ptr(), "nn.Module: " + type + "_" + std::to_string(number))
        .first->second;
}

const std::string& name_of(PyFrameObject* frame) {
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    if (code.ptr() == calls().module_call) {
        const py::handle handle(reinterpret_cast<PyObject*>(frame));
        const py::object locals = handle.attr("f_locals");
        if (locals.contains("self")) return module_name(locals["self"]);
    }
    return function_name(code);
}

void open_call(PyFrameObject* frame) {
    auto& open = calls().open;
    open.push_back(open.size() < kMaxDepth
                       ? Observer::instance().open_python(name_of(frame).c_str())
                       : PythonRange{});
}

void close_call() {
    auto& open = calls().open;
    if (open.empty()) return;
    Observer::instance().close_python(open.back());
    open.pop_back();
}

int on_event(PyObject* /*self*/, PyFrameObject* frame, int what, PyObject* /*argument*/) {
    if (what != PyTrace_CALL && what != PyTrace_RETURN) return 0;
    if (calls().num_users == 0) return 0;
    try {
        if (what == PyTrace_CALL) {
            open_call(frame);
        } else {
            close_call();
        }
    } catch (py::error_already_set& error) {
        error.discard_as_unraisable("trnscope's recording of Python functions");
    }
    return 0;
}

// Outermost first: they began before the recording.
void open_running() {
    std::vector<py::object> frames;
    PyFrameObject* innermost = PyThreadState_GetFrame(PyThreadState_Get());
    auto frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(innermost));
    while (frame && !frame.is_none()) {
        frames.push_back(frame);
        frame = frame.attr("f_back");
    }
    std::reverse(frames.begin(), frames.end());
    for (const py::object& one : frames) open_call(reinterpret_cast<PyFrameObject*>(one.ptr()));
}

// Code of Module.__call__, where a frame stands for a module.
PyObject* code_of_module_call() {
    const py::object modules = py::module_::import("sys").attr("modules");
    if (!modules.contains("torch.nn")) return nullptr;
    const py::object call = modules["torch.nn"].attr("Module").attr("__call__");
    return py::getattr(call, "__code__", py::none()).ptr();
}

void forget() {
    Calls& all = calls();
    all.thread = nullptr;
    all.open.clear();
    all.functions.clear();
    all.modules.clear();
    all.num_modules.clear();
    all.kept.clear();
}

}  // namespace

bool begin_python_calls() {
    py::gil_scoped_acquire gil;
    Calls& all = calls();
    PyThreadState* const thread = PyThreadState_Get();
    if (all.num_users == 0 && thread->c_profilefunc != nullptr) return false;
    if (++all.num_users > 1) return true;
    all.thread = thread;
    all.module_call = code_of_module_call();
    open_running();
    PyEval_SetProfile(&on_event, nullptr);
    return true;
}

bool end_python_calls() {
    py::gil_scoped_acquire gil;
    Calls& all = calls();
    PyThreadState* const thread = PyThreadState_Get();
    // Of another thread than began it nothing is known; its hook ends by itself.
    const bool is_ours = thread != all.thread || thread->c_profilefunc == &on_event;
    if (--all.num_users > 0) return is_ours;
    if (thread == all.thread && is_ours) PyEval_SetProfile(nullptr, nullptr);
    while (!all.open.empty()) close_call();
    forget();
    return is_ours;
}

}  // namespace trnscope::sim
