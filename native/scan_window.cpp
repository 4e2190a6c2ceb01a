#include "scan_window.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace trnscope {

size_t Window::append(const char* data, size_t size) {
    const size_t n = std::min(size, capacity_ - size_);
    std::memcpy(end(), data, n);
    set_size(size_ + n);
    return n;
}

void Window::set_size(size_t size) {
    size_ = size;
    std::memset(end(), 0, kPadding);
}

InputFile::~InputFile() {
    if (fd_ >= 0) ::close(fd_);
}

int InputFile::open(const std::string& path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return errno;
    struct stat status;
    if (::fstat(fd_, &status) != 0) return errno;
    if (S_ISDIR(status.st_mode)) return EISDIR;
    if (!S_ISREG(status.st_mode)) return ESPIPE;
    size_ = static_cast<uint64_t>(status.st_size);
    return 0;
}

int InputFile::read(Window* window, size_t size) const {
    size_t done = 0;
    while (done < size) {
        const auto offset = static_cast<off_t>(window->offset() + done);
        const ssize_t n = ::pread(fd_, window->begin() + done, size - done, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) break;
        done += static_cast<size_t>(n);
    }
    window->set_size(done);
    return 0;
}

}  // namespace trnscope
