// The Python module trnscope._native: everything native is registered here.
#include <nanobind/nanobind.h>

#include <system_error>

#include "bindings.h"

namespace {

// A failed system call becomes the OSError that Python itself would raise.
void translate_system_error(const std::exception_ptr& failure, void*) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrno(PyExc_OSError);
    }
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Native parts of trnscope: the trace scanner and the index builder.";
    nanobind::register_exception_translator(translate_system_error);
    bind_scan(m);
    bind_ingest(m);
    bind_store(m);
    bind_links(m);
    bind_analysis(m);
}
