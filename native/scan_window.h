// A piece of the input in memory, and where pieces come from.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "scan_simd.h"

namespace trnscope {

// Room for text, with room before it (for the end of the window before) and zero bytes after it.
class Window {
  public:
    static constexpr size_t kHeadroom = 64 * 1024;

    explicit Window(size_t capacity)
        : capacity_(capacity), bytes_(new char[kHeadroom + capacity + kPadding]) {}

    void reset(uint64_t offset) {
        offset_ = offset;
        size_ = 0;
    }
    uint64_t offset() const { return offset_; }
    size_t size() const { return size_; }
    bool is_full() const { return size_ == capacity_; }
    char* begin() { return bytes_.get() + kHeadroom; }
    char* end() { return begin() + size_; }

    // Copies what fits; returns how much.
    size_t append(const char* data, size_t size);
    void set_size(size_t size);

  private:
    size_t capacity_;
    uint64_t offset_ = 0;
    size_t size_ = 0;
    std::unique_ptr<char[]> bytes_;
};

// A file read by position, from any thread.
class InputFile {
  public:
    InputFile() = default;
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;
    ~InputFile();

    // These return 0 or the errno of what went wrong.
    int open(const std::string& path);
    // Fills the window from its offset on, or to the end of the file.
    int read(Window* window, size_t size) const;

    uint64_t size() const { return size_; }

  private:
    int fd_ = -1;
    uint64_t size_ = 0;
};

}  // namespace trnscope
