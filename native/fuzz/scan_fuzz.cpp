// Fuzz target of the scanner, for libFuzzer with the address and undefined-behaviour sanitizers.
//
// The first bytes of the input choose threads, window size and how the rest, which is the
// document, is cut into feeds. The result must be that of one thread and one window.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "scan_scanner.h"

namespace {

using namespace trnscope;

constexpr size_t kHeaderBytes = 4;
constexpr uint32_t kMaxEventBytes = 512;

struct Result {
    std::vector<std::string> events;
    std::vector<std::string> about;

    bool operator==(const Result& other) const {
        return events == other.events && about == other.about;
    }
};

ScanOptions options(uint32_t num_threads, uint32_t window_bytes) {
    ScanOptions options;
    options.arg_keys = {{"correlation", false}, {"kind", true}, {"Input Dims", true}, {"", false}};
    options.num_threads = num_threads;
    options.window_bytes = window_bytes;
    options.segment_events = 3;
    options.max_event_bytes = kMaxEventBytes;
    return options;
}

void add_number(uint64_t number, std::string* out) {
    *out += std::to_string(number) + ' ';
}

// All columns of one row as text; strings by their text, since a wrong id would show.
std::string row_text(const EventColumns& events, size_t row, const Scanner& scanner) {
    const auto strings = scanner.strings();
    const auto tracks = scanner.tracks();
    std::string text;
    for (const uint64_t number :
         {uint64_t{events.ph[row]}, uint64_t{events.flags[row]},
          static_cast<uint64_t>(events.ts_ns[row]), static_cast<uint64_t>(events.dur_ns[row]),
          events.id[row], events.args_offset[row], uint64_t{events.args_length[row]}}) {
        add_number(number, &text);
    }
    text.append(strings.at(events.category[row])).push_back('|');
    text.append(strings.at(events.name[row])).push_back('|');
    text.append(tracks.at(events.track[row])).push_back('|');
    return text;
}

void add_attributes(const EventColumns& events, size_t first, const Scanner& scanner,
                    std::vector<std::string>* rows) {
    const auto strings = scanner.strings();
    for (const AttributeColumn& attribute : events.attributes) {
        const bool is_text = attribute.string_ids.size() > 0;
        for (size_t i = 0; i < attribute.rows.size(); ++i) {
            std::string& row = rows->at(first + attribute.rows[i]);
            if (is_text) {
                row.append(strings.at(attribute.string_ids[i]));
            } else {
                add_number(attribute.integers[i], &row);
            }
        }
        for (size_t i = 0; i < attribute.negatives.size(); ++i) {
            const uint32_t row = attribute.rows.data()[attribute.negatives[i]];
            rows->at(first + row) += "negative";
        }
    }
    for (size_t i = 0; i < events.counters.rows.size(); ++i) {
        std::string& row = rows->at(first + events.counters.rows[i]);
        row.append(strings.at(events.counters.keys[i]));
        row += std::to_string(events.counters.values[i]);
    }
}

void drain(Scanner* scanner, Result* result) {
    for (;;) {
        std::unique_ptr<EventColumns> events;
        if (scanner->next_segment(&events) == Scanner::Wait::kAgain) continue;
        if (!events) return;
        const size_t first = result->events.size();
        for (size_t row = 0; row < events->num_events(); ++row) {
            result->events.push_back(row_text(*events, row, *scanner));
        }
        add_attributes(*events, first, *scanner, &result->events);
    }
}

void describe(const Scanner& scanner, Result* result) {
    const Sequencer& found = scanner.result();
    const DocumentInfo& info = found.info();
    for (size_t kind = 0; kind < kNumDamageKinds; ++kind) {
        const auto& entry = found.damage()[static_cast<DamageKind>(kind)];
        result->about.push_back(std::to_string(entry.count) + '@' +
                                std::to_string(entry.first_offset));
    }
    for (const auto& [key, json] : info.metadata) result->about.push_back(key + '=' + json);
    result->about.push_back(
        std::to_string(static_cast<int>(info.kind)) + ' ' + std::to_string(info.num_documents) +
        ' ' + std::to_string(info.saw_trace_events) + ' ' + std::to_string(info.ended_cleanly));
    for (const std::string_view text : scanner.strings()) result->about.emplace_back(text);
}

Result scan(std::string_view document, const ScanOptions& options, size_t chunk_bytes) {
    Scanner scanner(options);
    while (!document.empty()) {
        const std::string chunk(document.substr(0, chunk_bytes));  // so that overreads show
        const char* data = chunk.data();
        size_t size = chunk.size();
        while (scanner.feed(&data, &size) == Scanner::Wait::kAgain) {
        }
        document.remove_prefix(chunk.size());
    }
    scanner.close_input();
    Result result;
    drain(&scanner, &result);
    if (!scanner.is_finished()) {
        std::fprintf(stderr, "failed: %s\n", scanner.failure().message.c_str());
        std::abort();
    }
    describe(scanner, &result);
    return result;
}

void print(const char* title, const Result& result) {
    std::fprintf(stderr, "%s\n", title);
    for (const std::string& event : result.events) std::fprintf(stderr, "  %s\n", event.c_str());
    for (const std::string& line : result.about) std::fprintf(stderr, "  : %s\n", line.c_str());
}

// A scanner that is dropped while it works must stop.
void scan_and_drop(std::string_view document, const ScanOptions& options) {
    Scanner scanner(options);
    const char* data = document.data();
    size_t size = document.size();
    scanner.feed(&data, &size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < kHeaderBytes) return 0;
    const uint32_t num_threads = 1 + data[0] % 3;
    const uint32_t window_bytes = 1 + data[1] + 16u * (data[2] % 8);
    const size_t chunk_bytes = 1 + 3u * data[3];
    const std::string_view document(reinterpret_cast<const char*>(data) + kHeaderBytes,
                                    size - kHeaderBytes);
    const Result whole = scan(document, options(1, 1u << 20), 1u << 20);
    const Result pieces = scan(document, options(num_threads, window_bytes), chunk_bytes);
    if (!(whole == pieces)) {
        print("one window:", whole);
        print("windows:", pieces);
        std::abort();
    }
    if (data[0] % 16 == 0) scan_and_drop(document, options(2, window_bytes));
    return 0;
}
