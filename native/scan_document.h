// A whole trace document in pieces: what is around the event array, and the array itself.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scan_events.h"

namespace trnscope {

enum class DocumentKind : uint8_t { kNone, kObject, kArray };

struct DocumentInfo {
    DocumentKind kind = DocumentKind::kNone;  // of the first document
    uint32_t num_documents = 0;
    bool saw_trace_events = false;
    bool ended_cleanly = false;
    std::vector<std::pair<std::string, std::string>> metadata;  // key, raw JSON
};

// Passes over a value of any size by its brackets and quotes alone, in pieces.
class BracketSkipper {
  public:
    void begin() { *this = {}; }
    // Position after the value, or nullptr if it goes on after `end`.
    const char* skip(const char* p, const char* end);

  private:
    uint64_t depth_ = 0;
    bool in_string_ = false;
    bool in_escape_ = false;
};

class DocumentReader {
  public:
    DocumentReader(const ArgKeys& arg_keys, Batch* batch, uint32_t max_event_bytes)
        : array_(arg_keys, batch, max_event_bytes), batch_(batch) {}

    // Reads from p until the text ends (false; go on from *p with more text) or until an event
    // begins at `target` (true; the caller may know the events from there on).
    bool run(const Span& span, bool is_final, uint64_t target, const char** p);

    void finish_batch() { array_.finish_batch(); }

    // Events from the target on were read elsewhere, which ended in this state.
    void adopt(const ArrayState& state) { array_state_ = state; }

    const DocumentInfo& info() const { return info_; }

  private:
    enum class State : uint8_t {
        kStart,
        kFirstKey,
        kKey,
        kColon,
        kValue,
        kSkipValue,
        kAfterValue,
        kEvents,
        kResync,
        kIgnore,
    };
    enum class Next : uint8_t { kGoOn, kNeedMore, kTarget };

    Next step(uint64_t target, const char** p);
    Next start(const char** p);
    Next begin_document(const char** p);
    Next key(const char** p);
    Next colon(const char** p);
    Next value(const char** p);
    Next plain_value(const char** p);
    Next skip_value(const char** p);
    Next after_value(const char** p);
    Next events(uint64_t target, const char** p);
    Next resync(const char** p);
    Next unreadable(const char* at, const char** p);
    Next need_more(const char* start);

    bool is_retry_due(const char* start) const;
    void add_metadata(const Value& value);
    void finish(const char* p);
    void note(DamageKind kind, const char* at) { batch_->damage.add(kind, span_.offset(at)); }

    EventArrayReader array_;
    Batch* batch_;
    ValueScanner values_;
    BracketSkipper skipper_;
    Span span_{};
    bool is_final_ = false;

    State state_ = State::kStart;
    bool is_bare_ = false;
    ArrayState array_state_;
    std::string key_;
    size_t metadata_bytes_ = 0;
    DocumentInfo info_;

    // Something that starts at retry_at_ did not fit in the text: try again with twice as much,
    // so that the work stays linear.
    uint64_t retry_at_ = 0;
    uint64_t retry_bytes_ = 0;
};

}  // namespace trnscope
