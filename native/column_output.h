// Writes pieces of fixed-width columns into an open file.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

namespace trnscope {

// Writes all bytes at the offset. Throws std::system_error.
inline void write_at(int fd, const void* data, size_t size, int64_t offset) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t written = ::pwrite(fd, at, size, offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw std::system_error(errno, std::generic_category(), "pwrite");
        at += written;
        offset += written;
        size -= static_cast<size_t>(written);
    }
}

// One column whose rows are made lane by lane, each lane in order but all lanes at once.
template <typename T>
class LaneColumn {
  public:
    // Row r of the table lies at byte `offset + r * sizeof(T)`; lane l begins at row lane_first[l].
    // The lanes have num_rows rows in all.
    LaneColumn(int fd, int64_t offset, const std::vector<uint32_t>& lane_first, size_t num_rows)
        : fd_(fd), offset_(offset), next_row_(lane_first), held_(lane_first.size(), 0) {
        capacity_ = kMinBuffer;
        if (!held_.empty()) capacity_ += std::min(kSharedBuffer, num_rows) / held_.size();
        buffer_.reset(new T[held_.size() * capacity_]);
    }

    void append(size_t lane, T value) {
        buffer_[lane * capacity_ + held_[lane]++] = value;
        if (held_[lane] == capacity_) flush(lane);
    }

    void flush_all() {
        for (size_t lane = 0; lane < held_.size(); ++lane) flush(lane);
    }

  private:
    static constexpr size_t kMinBuffer = 64;            // values a lane
    static constexpr size_t kSharedBuffer = 256 << 10;  // values over all lanes

    void flush(size_t lane) {
        write_at(fd_, &buffer_[lane * capacity_], held_[lane] * sizeof(T),
                 offset_ + static_cast<int64_t>(next_row_[lane] * sizeof(T)));
        next_row_[lane] += held_[lane];
        held_[lane] = 0;
    }

    int fd_;
    int64_t offset_;
    std::vector<uint32_t> next_row_;
    std::vector<uint32_t> held_;   // values in each lane's part of the buffer
    std::unique_ptr<T[]> buffer_;  // left uninitialised: a short lane touches little of it
    size_t capacity_;              // of a lane's part
};

}  // namespace trnscope
