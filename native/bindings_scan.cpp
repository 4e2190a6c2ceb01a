// Python names of the trace scanner.
#include "bindings.h"

void bind_scan(nanobind::module_&) {}
