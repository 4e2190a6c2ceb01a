// Joins what workers read from windows into the one true reading of the document.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scan_document.h"
#include "scan_window.h"

namespace trnscope {

struct ScanOptions {
    std::vector<ArgKey> arg_keys;
    uint32_t num_threads = 1;
    uint32_t segment_events = 1'000'000;
    uint32_t window_bytes = 1u << 20;
    uint32_t max_event_bytes = 64u << 20;
};

// A window, and what a worker made of it on the guess that an event begins at `start`.
struct Piece {
    Piece(const ArgKeys& arg_keys, size_t window_bytes)
        : window(window_bytes), batch(arg_keys.size()) {}

    static constexpr uint64_t kNoGuess = ~uint64_t{0};

    uint64_t index = 0;
    Window window;
    Batch batch;
    uint64_t start = kNoGuess;  // file offset
    uint64_t stop = 0;          // where reading ended, in state `state`
    ArrayState state;
    bool is_final = false;
};

// Reads events from the middle of a window. One per thread.
class WindowReader {
  public:
    explicit WindowReader(const ArgKeys& arg_keys, const ScanOptions& options)
        : batch_(arg_keys.size()), array_(arg_keys, &batch_, options.max_event_bytes) {}

    void read(Piece* piece);

  private:
    Batch batch_;
    EventArrayReader array_;
};

// Takes pieces in order. What a worker guessed is used only if reading from the true beginning
// arrives at the guessed event with nothing in doubt; else the window is read again. So the
// result is that of reading the input in one go. For one thread at a time.
class Sequencer {
  public:
    explicit Sequencer(const ArgKeys& arg_keys, const ScanOptions& options);

    void merge(Piece* piece);

    // The segment so far, if it is full or the input has ended; else nullptr.
    std::unique_ptr<EventColumns> take_segment();

    const StringTable& strings() const { return strings_; }
    const StringTable& tracks() const { return tracks_; }
    const DamageLog& damage() const { return damage_; }
    const DocumentInfo& info() const { return document_.info(); }
    bool is_finished() const { return finished_; }

  private:
    void flush();
    Span join(Piece* piece);

    const ArgKeys& arg_keys_;
    const uint32_t segment_events_;
    Batch batch_;
    DocumentReader document_;
    std::string carry_;   // text before the next window that is still needed
    std::string joined_;  // carry and window, where the carry is long
    std::unique_ptr<EventColumns> segment_;
    size_t last_segment_events_ = 0;
    StringTable strings_;
    StringTable tracks_;
    DamageLog damage_;
    bool finished_ = false;
};

}  // namespace trnscope
