#include "sort.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace trnscope {

std::vector<uint32_t> group_order(const uint32_t* keys, size_t n, size_t num_groups,
                                  std::vector<int64_t>* first) {
    first->assign(num_groups + 1, 0);
    for (size_t i = 0; i < n; ++i) ++(*first)[keys[i] + 1];
    std::partial_sum(first->begin(), first->end(), first->begin());
    std::vector<int64_t> next(first->begin(), first->end() - 1);
    std::vector<uint32_t> order(n);
    for (size_t i = 0; i < n; ++i) order[next[keys[i]]++] = static_cast<uint32_t>(i);
    return order;
}

namespace {

constexpr int kDigitBits = 11;
constexpr size_t kNumDigits = size_t{1} << kDigitBits;

template <typename Key>
void radix_pass(const Key* keys, int shift, const std::vector<uint32_t>& from,
                std::vector<uint32_t>* to) {
    const auto digit = [&](uint32_t index) { return (keys[index] >> shift) & (kNumDigits - 1); };
    std::array<size_t, kNumDigits> next{};
    for (uint32_t index : from) ++next[digit(index)];
    size_t sum = 0;
    for (size_t& count : next) sum += std::exchange(count, sum);
    for (uint32_t index : from) (*to)[next[digit(index)]++] = index;
}

template <typename Key>
void radix_sort(const Key* keys, std::vector<uint32_t>* order) {
    if (order->empty()) return;
    const auto before = [keys](uint32_t a, uint32_t b) { return keys[a] < keys[b]; };
    if (std::is_sorted(order->begin(), order->end(), before)) return;
    Key differ = 0;  // bits in which any two keys differ
    for (uint32_t index : *order) differ |= keys[index] ^ keys[order->front()];
    std::vector<uint32_t> other(order->size());
    constexpr int kKeyBits = sizeof(Key) * 8;
    for (int shift = 0; shift < kKeyBits; shift += kDigitBits) {
        if (((differ >> shift) & (kNumDigits - 1)) == 0) continue;
        radix_pass(keys, shift, *order, &other);
        order->swap(other);
    }
}

}  // namespace

void sort_by_key(const uint32_t* keys, std::vector<uint32_t>* order) {
    radix_sort(keys, order);
}

void sort_by_key(const uint64_t* keys, std::vector<uint32_t>* order) {
    radix_sort(keys, order);
}

void sort_slices(const int64_t* start, const int64_t* dur, uint32_t* events, size_t n) {
    const auto before = [start, dur](uint32_t a, uint32_t b) {
        if (start[a] != start[b]) return start[a] < start[b];
        if (dur[a] != dur[b]) return dur[a] > dur[b];
        return a < b;
    };
    // Offsets where a sorted run begins, and the end.
    std::vector<size_t> runs{0};
    for (size_t i = 1; i < n; ++i) {
        if (before(events[i], events[i - 1])) runs.push_back(i);
    }
    runs.push_back(n);
    if (runs.size() <= 2) return;
    std::vector<uint32_t> other(n);
    uint32_t *from = events, *to = other.data();
    while (runs.size() > 2) {
        std::vector<size_t> merged{0};
        for (size_t r = 0; r + 1 < runs.size(); r += 2) {
            const size_t low = runs[r], middle = runs[r + 1];
            const size_t high = r + 2 < runs.size() ? runs[r + 2] : middle;
            std::merge(from + low, from + middle, from + middle, from + high, to + low, before);
            merged.push_back(high);
        }
        std::swap(from, to);
        runs.swap(merged);
    }
    if (from != events) std::copy(from, from + n, events);
}

}  // namespace trnscope
