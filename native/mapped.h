// Columns that lie in mapped files: their pages can be given back after a long pass.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace trnscope {

// Gives back the pages that lie wholly inside a column of a file mapping; they are read again at
// need. Must not be used on memory that is no shared file mapping: it would be cleared.
template <typename T>
void release_pages(const T* column, size_t n) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = (reinterpret_cast<uintptr_t>(column) + page - 1) / page * page;
    const auto last = reinterpret_cast<uintptr_t>(column + n) / page * page;
    if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace trnscope
