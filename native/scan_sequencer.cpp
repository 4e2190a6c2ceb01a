#include "scan_sequencer.h"

#include <cstring>

namespace trnscope {

void WindowReader::read(Piece* piece) {
    Window& window = piece->window;
    const Span span{window.begin(), window.end(), window.offset()};
    piece->start = Piece::kNoGuess;
    const char* p = find_next_event(span.begin, span.end);
    if (p == nullptr) return;
    piece->start = span.offset(p);
    piece->state = {};
    piece->state.step = ArrayStep::kElement;
    const bool ended =
        array_.run(span, false, false, Piece::kNoGuess, &piece->state, &p) == ArrayStop::kEnd;
    if (ended) {  // the bracket is read again by whoever knows what it closes
        --p;
        piece->state.step = ArrayStep::kAfter;
    }
    piece->stop = span.offset(p);
    array_.finish_batch();
    std::swap(batch_, piece->batch);
    batch_.clear();
}

Sequencer::Sequencer(const ArgKeys& arg_keys, const ScanOptions& options)
    : arg_keys_(arg_keys),
      segment_events_(options.segment_events),
      batch_(arg_keys.size()),
      document_(arg_keys, &batch_, options.max_event_bytes) {
    static constexpr char kNothing[16] = {};
    strings_.intern({kNothing, 0});
}

void Sequencer::merge(Piece* piece) {
    const Span span = join(piece);
    const char* p = span.begin;
    const bool use_guess = document_.run(span, piece->is_final, piece->start, &p);
    flush();
    if (use_guess) {
        append_batch(piece->batch, arg_keys_, &strings_, &tracks_, segment_.get());
        damage_.merge(piece->batch.damage);
        document_.adopt(piece->state);
        p = span.at(piece->stop);
        document_.run(span, piece->is_final, Piece::kNoGuess, &p);
        flush();
    }
    carry_.assign(p, span.end);
    finished_ = piece->is_final;
}

// The carry and the window as one text.
Span Sequencer::join(Piece* piece) {
    Window& window = piece->window;
    const uint64_t base = window.offset() - carry_.size();
    if (carry_.size() <= Window::kHeadroom) {
        char* const begin = window.begin() - carry_.size();
        if (!carry_.empty()) std::memcpy(begin, carry_.data(), carry_.size());
        return {begin, window.end(), base};
    }
    joined_.swap(carry_);
    joined_.append(window.begin(), window.size() + kPadding);
    return {joined_.data(), joined_.data() + joined_.size() - kPadding, base};
}

void Sequencer::flush() {
    if (!segment_) {
        segment_ = std::make_unique<EventColumns>(arg_keys_.size());
        segment_->reserve_events(last_segment_events_);
    }
    document_.finish_batch();
    append_batch(batch_, arg_keys_, &strings_, &tracks_, segment_.get());
    damage_.merge(batch_.damage);
    batch_.clear();
}

std::unique_ptr<EventColumns> Sequencer::take_segment() {
    if (!segment_ || segment_->num_events() == 0) return nullptr;
    if (segment_->num_events() < segment_events_ && !finished_) return nullptr;
    last_segment_events_ = segment_->num_events();
    return std::move(segment_);
}

}  // namespace trnscope
