#include "scan_events.h"

#include <algorithm>
#include <cstring>

namespace trnscope {
namespace {

// While searching, this much text before the present place is kept: the end of the array is
// looked for in it when no further event is found.
constexpr uint64_t kSearchTail = 64 * 1024;
constexpr int kMaxTailCandidates = 64;

// Whether valid members of the document's object follow p, up to the end of the input.
bool is_document_tail(const char* p, const char* end) {
    ValueScanner values;
    values.begin(end);
    p = skip_space(p);
    while (*p == ',') {
        Value ignored;
        p = skip_space(p + 1);
        if (*p != '"') return false;
        if ((p = values.string(p, &ignored)) == nullptr) return false;
        if ((p = values.colon(p)) == nullptr) return false;
        if ((p = values.value(p, &ignored)) == nullptr) return false;
        p = skip_space(p);
    }
    return *p == '}' && p < end && skip_space(p + 1) == end;
}

}  // namespace

ArrayStop EventArrayReader::run(const Span& span, bool is_final, bool is_bare, uint64_t target,
                                ArrayState* state, const char** p) {
    span_ = span;
    is_final_ = is_final;
    is_bare_ = is_bare;
    state_ = state;
    for (;;) {
        if (state->step == ArrayStep::kElement) {
            *p = skip_space(*p);
            const uint64_t offset = span.offset(*p);
            if (offset == target && state->is_clean_at(offset)) return ArrayStop::kTarget;
        }
        switch (step(p)) {
            case Next::kGoOn:
                continue;
            case Next::kNeedMore:
                return ArrayStop::kNeedMore;
            case Next::kEnd:
                return ArrayStop::kEnd;
        }
    }
}

EventArrayReader::Next EventArrayReader::step(const char** p) {
    if (state_->step == ArrayStep::kResync) return resync(p);
    *p = skip_space(*p);
    if (*p >= span_.end) return Next::kNeedMore;
    return state_->step == ArrayStep::kAfter ? after_element(p) : before_element(p);
}

EventArrayReader::Next EventArrayReader::before_element(const char** p) {
    switch (**p) {
        case ']':
            if (state_->step == ArrayStep::kElement) note(DamageKind::kTrailingComma, *p);
            ++*p;
            return Next::kEnd;
        case ',':
            note(DamageKind::kUnreadableEvent, *p);
            ++*p;
            state_->step = ArrayStep::kElement;
            return Next::kGoOn;
        default:
            return read_element(p);
    }
}

EventArrayReader::Next EventArrayReader::after_element(const char** p) {
    switch (**p) {
        case ',':
            ++*p;
            state_->step = ArrayStep::kElement;
            return Next::kGoOn;
        case ']':
            ++*p;
            return Next::kEnd;
        case '{':
            note(DamageKind::kMissingComma, *p);
            state_->step = ArrayStep::kElement;
            return Next::kGoOn;
        default:
            fail(*p, span_.offset(*p), p);
            return Next::kGoOn;
    }
}

EventArrayReader::Next EventArrayReader::read_element(const char** p) {
    const char* const start = *p;
    const bool is_object = *start == '{';
    switch (is_object ? parser_.scan(span_, start) : parser_.scan_other(span_, start)) {
        case ScanStatus::kNeedMore:
            return cut_off(start, p);
        case ScanStatus::kBad:
            fail(start, span_.offset(parser_.failed_at()), p);
            return Next::kGoOn;
        default:
            break;
    }
    // A number may go on in the next window.
    if (parser_.end() == span_.end && !is_object && !is_final_) return Next::kNeedMore;
    if (static_cast<uint64_t>(parser_.end() - start) > max_event_bytes_) {
        fail(start, span_.offset(start) + max_event_bytes_, p);
        return Next::kGoOn;
    }
    if (is_object) return accept(start, p);
    note(DamageKind::kUnreadableEvent, start);
    *p = parser_.end();
    state_->step = ArrayStep::kAfter;
    return Next::kGoOn;
}

// The element is well formed.
EventArrayReader::Next EventArrayReader::accept(const char* start, const char** p) {
    if (state_->in_doubt && !parser_.has_ph()) {
        fail(start, span_.offset(parser_.end()), p);
        return Next::kGoOn;
    }
    if (!parser_.commit()) note(DamageKind::kUnreadableEvent, parser_.failed_at());
    state_->in_doubt = false;
    state_->step = ArrayStep::kAfter;
    *p = parser_.end();
    return Next::kGoOn;
}

// The text ends inside the element.
EventArrayReader::Next EventArrayReader::cut_off(const char* start, const char** p) {
    if (static_cast<uint64_t>(span_.end - start) > max_event_bytes_) {
        fail(start, span_.offset(start) + max_event_bytes_, p);
        return Next::kGoOn;
    }
    if (!is_final_) return Next::kNeedMore;
    state_->truncated = true;
    fail(start, span_.end_offset() + 1, p);
    return Next::kGoOn;
}

// The element at `start` cannot be read, which showed at `failed_at`.
void EventArrayReader::fail(const char* start, uint64_t failed_at, const char** p) {
    const uint64_t offset = span_.offset(start);
    failed_at = std::min(failed_at, offset + max_event_bytes_);
    const bool counted_already = state_->in_doubt && offset < state_->searched_to;
    if (!counted_already) {
        const bool truncated = failed_at > span_.end_offset();
        batch_->damage.add(truncated ? DamageKind::kTruncated : DamageKind::kUnreadableEvent,
                           truncated ? offset : failed_at);
    }
    const bool search_inside = failed_at > state_->searched_to;
    if (search_inside) state_->searched_to = failed_at;
    const uint64_t from = search_inside ? offset + 1 : std::max(failed_at, offset + 1);
    state_->resync_from = state_->resync_at = std::min(from, span_.end_offset());
    state_->step = ArrayStep::kResync;
    state_->in_doubt = true;
    *p = span_.at(state_->resync_from);
}

EventArrayReader::Next EventArrayReader::resync(const char** p) {
    bool cut_off = false;
    const char* const candidate = find_candidate(span_.at(state_->resync_at), &cut_off);
    if (candidate != nullptr && !cut_off) {
        *p = candidate;
        state_->step = ArrayStep::kElement;
        return Next::kGoOn;
    }
    if (is_final_) return end_of_search(p);
    state_->resync_at = span_.offset(candidate == nullptr ? span_.end : candidate);
    const uint64_t tail = state_->resync_at - std::min(state_->resync_at, kSearchTail);
    *p = span_.at(std::max(tail, state_->resync_from));
    return Next::kNeedMore;
}

// Start of the text at hand that is searched.
const char* EventArrayReader::search_begin() const {
    return span_.at(std::max(state_->resync_from, span_.base));
}

// The next place from `from` on where an event may begin. *cut_off: more text will tell.
const char* EventArrayReader::find_candidate(const char* from, bool* cut_off) const {
    const char* const begin = search_begin();
    for (const char* p = from; p < span_.end; ++p) {
        p = static_cast<const char*>(std::memchr(p, '{', static_cast<size_t>(span_.end - p)));
        if (p == nullptr) return nullptr;
        bool is_ph = false;
        const Boundary boundary = begins_event(p, span_.end, &is_ph);
        if (boundary == Boundary::kCutOff) {
            *cut_off = true;
            return p;
        }
        // After a colon or an opening bracket it is a member of an event rather than an event.
        if (boundary != Boundary::kYes) continue;
        const char before = previous_character(begin, p);
        if (is_ph || (before != ':' && before != '[')) return p;
    }
    return nullptr;
}

// No event follows in the input. The array may still end as it should.
EventArrayReader::Next EventArrayReader::end_of_search(const char** p) {
    const uint64_t end = span_.end_offset();
    const uint64_t tail = end - std::min(end, kSearchTail);
    const char* q = span_.at(std::max(tail, state_->resync_from));
    for (int n = 0; !state_->truncated && n < kMaxTailCandidates && q < span_.end; ++n) {
        q = static_cast<const char*>(std::memchr(q, ']', static_cast<size_t>(span_.end - q)));
        if (q == nullptr) break;
        if (is_array_end(q)) {
            *p = q + 1;
            return Next::kEnd;
        }
        ++q;
    }
    *p = span_.end;
    return Next::kNeedMore;
}

bool EventArrayReader::is_array_end(const char* bracket) const {
    const char before = previous_character(search_begin(), bracket);
    if (before != '}' && before != ',') return false;
    if (is_bare_) return skip_space(bracket + 1) == span_.end;
    return is_document_tail(bracket + 1, span_.end);
}

}  // namespace trnscope
