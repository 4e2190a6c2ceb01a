// Events as columns: what a worker fills, and what leaves the scanner.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "scan_damage.h"
#include "scan_keys.h"
#include "string_table.h"

namespace trnscope {

enum EventFlag : uint8_t {
    kHasTs = 1,
    kHasDur = 2,
    kHasId = 4,
    kRepaired = 8,
    kBindEnclosing = 16,
    kNonFiniteTime = 32,
    kScopeGlobal = 64,
};

// A growing array of plain values: new room is not zeroed, and big arrays grow in place.
template <typename T>
class Column {
  public:
    Column() = default;
    Column(const Column&) = delete;
    Column& operator=(const Column&) = delete;
    Column(Column&& other) noexcept { swap(other); }
    Column& operator=(Column&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Column() { std::free(data_); }

    size_t size() const { return size_; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T operator[](size_t i) const { return data_[i]; }
    void clear() { size_ = 0; }

    void push_back(T value) {
        if (size_ == capacity_) reserve(size_ + 1);
        data_[size_++] = value;
    }

    // Room for `n` more values at the end; the caller fills all of it.
    T* extend(size_t n) {
        if (size_ + n > capacity_) reserve(size_ + n);
        size_ += n;
        return data_ + size_ - n;
    }

    void append(const Column& other) {
        if (other.size_ != 0)
            std::memcpy(extend(other.size_), other.data_, other.size_ * sizeof(T));
    }

    void reserve(size_t n) {
        if (n <= capacity_) return;
        const size_t wanted = capacity_ * 2 > n ? capacity_ * 2 : (n < 64 ? 64 : n);
        void* grown = std::realloc(data_, wanted * sizeof(T));
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(grown);
        capacity_ = wanted;
    }

    // Gives the memory away, without spare room; free() releases it. Never nullptr.
    T* release() {
        void* shrunk = std::realloc(data_, size_ == 0 ? sizeof(T) : size_ * sizeof(T));
        if (shrunk == nullptr) throw std::bad_alloc();
        T* data = static_cast<T*>(shrunk);
        data_ = nullptr;
        size_ = capacity_ = 0;
        return data;
    }

  private:
    void swap(Column& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    T* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

// Values of one requested member of args, for the rows that have it.
struct AttributeColumn {
    Column<uint32_t> rows;
    Column<uint64_t> integers;    // two's complement where negative
    Column<uint32_t> negatives;   // positions in `integers`
    Column<uint32_t> string_ids;  // instead of integers for a text attribute
};

struct CounterColumns {
    Column<uint32_t> rows;
    Column<uint32_t> keys;
    Column<double> values;
};

struct EventColumns {
    explicit EventColumns(size_t num_attributes) : attributes(num_attributes) {}

    size_t num_events() const { return ph.size(); }
    void reserve_events(size_t n);

    Column<uint8_t> ph;
    Column<uint8_t> flags;
    Column<uint32_t> category;
    Column<uint32_t> name;
    Column<uint32_t> track;
    Column<int64_t> ts_ns;
    Column<int64_t> dur_ns;
    Column<uint64_t> id;
    Column<uint64_t> args_offset;
    Column<uint32_t> args_length;
    std::vector<AttributeColumn> attributes;
    CounterColumns counters;
};

// An event as a worker writes it, with the worker's own string and track ids.
struct EventRow {
    int64_t ts_ns;
    int64_t dur_ns;
    uint64_t id;
    uint64_t args_offset;
    uint32_t args_length;
    uint32_t category;
    uint32_t name;
    uint32_t track;
    uint8_t ph;
    uint8_t flags;
};

struct AttributeEntry {
    uint64_t value;  // an integer, or the worker's string id
    uint32_t row;
    bool negative;
};

// A worker's events of one stretch of the input.
struct Batch {
    explicit Batch(size_t num_attributes) : attributes(num_attributes) {}

    void clear();

    Column<EventRow> events;
    std::vector<Column<AttributeEntry>> attributes;
    CounterColumns counters;
    DamageLog damage;
    std::vector<LocalUse> strings;
    std::vector<LocalUse> tracks;
    std::shared_ptr<LocalTable> string_table;
    std::shared_ptr<LocalTable> track_table;
};

// Gives a batch's strings and tracks their global ids and adds its events to a segment.
void append_batch(const Batch& batch, const ArgKeys& arg_keys, StringTable* strings,
                  StringTable* tracks, EventColumns* segment);

}  // namespace trnscope
