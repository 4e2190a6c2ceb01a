// The elements of an event array, through damage: bad elements are counted and passed over.
#pragma once

#include <cstdint>

#include "scan_boundary.h"
#include "scan_event.h"

namespace trnscope {

enum class ArrayStep : uint8_t {
    kFirst,    // after the opening bracket
    kElement,  // after a comma
    kAfter,    // after an element
    kResync,   // looking for the next event after one that could not be read
};

// Where reading stands between two elements; enough to go on in another window.
struct ArrayState {
    ArrayStep step = ArrayStep::kFirst;
    // Since an unreadable event no other one was read. What is found then is taken for an event
    // only if it has a "ph".
    bool in_doubt = false;
    // After an unreadable event the text that it seemed to hold is searched for events, but no
    // text twice: only when it reached further than `searched_to`. This bounds the work.
    uint64_t searched_to = 0;
    uint64_t resync_from = 0;  // where the present search began
    uint64_t resync_at = 0;    // where it goes on
    bool truncated = false;    // the unreadable event runs past the end of the input

    // Whether an event at `offset` would be read as in a text without damage before it.
    bool is_clean_at(uint64_t offset) const {
        return step == ArrayStep::kElement && !in_doubt && searched_to <= offset;
    }
};

enum class ArrayStop : uint8_t {
    kNeedMore,  // the text ends inside an element
    kEnd,       // after the closing bracket
    kTarget,    // at the target, about to read an event, with nothing in doubt
};

class EventArrayReader {
  public:
    EventArrayReader(const ArgKeys& arg_keys, Batch* batch, uint32_t max_event_bytes)
        : parser_(arg_keys, batch), batch_(batch), max_event_bytes_(max_event_bytes) {}

    void finish_batch() { parser_.finish_batch(); }

    // Reads elements from p on, with the state kept in *state, and returns why it stopped. *p is
    // then where to go on; text before it is not needed again. `is_final` says that the text ends
    // with the input: then kNeedMore means that the array was not closed. `is_bare` says that the
    // array is the whole document.
    ArrayStop run(const Span& span, bool is_final, bool is_bare, uint64_t target, ArrayState* state,
                  const char** p);

  private:
    enum class Next : uint8_t { kGoOn, kNeedMore, kEnd };

    Next step(const char** p);
    Next before_element(const char** p);
    Next after_element(const char** p);
    Next read_element(const char** p);
    Next accept(const char* start, const char** p);
    Next cut_off(const char* start, const char** p);
    void fail(const char* start, uint64_t failed_at, const char** p);
    void note(DamageKind kind, const char* at) { batch_->damage.add(kind, span_.offset(at)); }

    Next resync(const char** p);
    const char* search_begin() const;
    const char* find_candidate(const char* from, bool* cut_off) const;
    Next end_of_search(const char** p);
    bool is_array_end(const char* bracket) const;

    EventParser parser_;
    Batch* batch_;
    const uint64_t max_event_bytes_;
    Span span_{};
    bool is_final_ = false;
    bool is_bare_ = false;
    ArrayState* state_ = nullptr;
};

}  // namespace trnscope
