// The Python module trnscope._native: everything native is registered here.
#include <nanobind/nanobind.h>

#include "bindings.h"

NB_MODULE(_native, m) {
    m.doc() = "Native parts of trnscope: the trace scanner and the index builder.";
    bind_scan(m);
    bind_store(m);
}
