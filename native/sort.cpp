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

void radix_pass(const uint32_t* keys, int shift, const std::vector<uint32_t>& from,
                std::vector<uint32_t>* to) {
    std::array<size_t, kNumDigits> next{};
    for (uint32_t index : from) ++next[(keys[index] >> shift) & (kNumDigits - 1)];
    size_t sum = 0;
    for (size_t& count : next) sum += std::exchange(count, sum);
    for (uint32_t index : from) (*to)[next[(keys[index] >> shift) & (kNumDigits - 1)]++] = index;
}

}  // namespace

std::vector<uint32_t> argsort_u32(const uint32_t* keys, size_t n) {
    std::vector<uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    if (std::is_sorted(keys, keys + n)) return order;
    const uint32_t largest = n == 0 ? 0 : *std::max_element(keys, keys + n);
    std::vector<uint32_t> other(n);
    for (int shift = 0; shift < 32 && (largest >> shift) != 0; shift += kDigitBits) {
        radix_pass(keys, shift, order, &other);
        order.swap(other);
    }
    return order;
}

bool last_by_key(const uint32_t* keys, size_t n, size_t num_keys, std::vector<uint32_t>* distinct,
                 std::vector<uint32_t>* position) {
    std::vector<uint32_t> last(num_keys, 0);  // position + 1
    size_t num_distinct = 0;
    for (size_t i = 0; i < n; ++i) {
        if (keys[i] >= num_keys) return false;
        num_distinct += last[keys[i]] == 0;
        last[keys[i]] = static_cast<uint32_t>(i) + 1;
    }
    distinct->reserve(num_distinct);
    position->reserve(num_distinct);
    for (size_t key = 0; key < num_keys; ++key) {
        if (last[key] == 0) continue;
        distinct->push_back(static_cast<uint32_t>(key));
        position->push_back(last[key] - 1);
    }
    return true;
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
