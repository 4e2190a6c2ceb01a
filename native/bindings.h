// What each bindings file registers in the module, and what they share: arrays and checks.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

void bind_scan(nanobind::module_& m);
void bind_store(nanobind::module_& m);
void bind_ingest(nanobind::module_& m);
void bind_links(nanobind::module_& m);
void bind_analysis(nanobind::module_& m);

// Hands a vector to numpy without a copy; the array owns it.
template <typename T>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> to_numpy(std::vector<T>&& values) {
    auto* owned = new std::vector<T>(std::move(values));
    nanobind::capsule owner(owned,
                            [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(owned->data(), {owned->size()},
                                                                    owner);
}

// A contiguous one-dimensional read-only input array.
template <typename T>
using In = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// A writable array; as an argument it must be bound with noconvert, or a copy would be filled.
template <typename T>
using Out = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// Raises ValueError where an argument is not as it must be.
inline void require(bool ok, const char* what) {
    if (!ok) throw nanobind::value_error(what);
}

// What f returns, while other Python threads may run.
template <typename F>
auto without_gil(F&& f) {
    nanobind::gil_scoped_release release;
    return f();
}
