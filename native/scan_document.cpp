#include "scan_document.h"

#include <cstring>

namespace trnscope {
namespace {

constexpr std::string_view kEventsKey = "traceEvents";
constexpr std::string_view kQuotedEventsKey = "\"traceEvents\"";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kMaxMemberBytes = 4u << 20;
constexpr size_t kMaxMetadataBytes = 16u << 20;
constexpr size_t kMaxMetadataMembers = 4096;

const char* find_text(const char* p, const char* end, std::string_view text) {
    while (p < end) {
        p = static_cast<const char*>(std::memchr(p, text[0], static_cast<size_t>(end - p)));
        if (p == nullptr) return nullptr;
        if (static_cast<size_t>(end - p) < text.size()) return nullptr;
        if (std::memcmp(p, text.data(), text.size()) == 0) return p;
        ++p;
    }
    return nullptr;
}

}  // namespace

const char* BracketSkipper::skip(const char* p, const char* end) {
    for (; p < end; ++p) {
        if (in_escape_) {
            in_escape_ = false;
        } else if (in_string_) {
            in_escape_ = *p == '\\';
            in_string_ = *p != '"';
            if (!in_string_ && depth_ == 0) return p + 1;
        } else if (*p == '"') {
            in_string_ = true;
        } else if (*p == '{' || *p == '[') {
            ++depth_;
        } else if (*p == '}' || *p == ']') {
            if (depth_ == 0) return p;  // the value was a number
            if (--depth_ == 0) return p + 1;
        } else if (*p == ',' && depth_ == 0) {
            return p;
        }
    }
    return nullptr;
}

bool DocumentReader::run(const Span& span, bool is_final, uint64_t target, const char** p) {
    span_ = span;
    is_final_ = is_final;
    for (;;) {
        switch (step(target, p)) {
            case Next::kGoOn:
                continue;
            case Next::kTarget:
                return true;
            case Next::kNeedMore:
                if (is_final) finish(*p);
                return false;
        }
    }
}

DocumentReader::Next DocumentReader::step(uint64_t target, const char** p) {
    switch (state_) {
        case State::kEvents:
            return events(target, p);
        case State::kSkipValue:
            return skip_value(p);
        case State::kResync:
            return resync(p);
        case State::kIgnore:
            *p = span_.end;
            return Next::kNeedMore;
        default:
            break;
    }
    if (state_ == State::kStart && span_.offset(*p) == 0) return start(p);
    *p = skip_space(*p);
    if (*p >= span_.end) return Next::kNeedMore;
    switch (state_) {
        case State::kStart:
            return begin_document(p);
        case State::kFirstKey:
        case State::kKey:
            return key(p);
        case State::kColon:
            return colon(p);
        case State::kValue:
            return value(p);
        default:
            return after_value(p);
    }
}

// At the first byte of the input.
DocumentReader::Next DocumentReader::start(const char** p) {
    const auto size = static_cast<size_t>(span_.end - *p);
    const size_t compared = size < kByteOrderMark.size() ? size : kByteOrderMark.size();
    if (std::memcmp(*p, kByteOrderMark.data(), compared) == 0) {
        if (compared < kByteOrderMark.size()) {
            if (!is_final_ || size == 0) return Next::kNeedMore;
        } else {
            note(DamageKind::kBom, *p);
            *p += kByteOrderMark.size();
        }
    }
    *p = skip_space(*p);
    return *p >= span_.end ? Next::kNeedMore : begin_document(p);
}

// Where a document may begin, at a byte that is not whitespace.
DocumentReader::Next DocumentReader::begin_document(const char** p) {
    is_bare_ = **p == '[';
    const bool is_first = info_.num_documents == 0;
    if (**p != '{' && !is_bare_) {
        if (!is_first) note(DamageKind::kTrailingData, *p);
        state_ = State::kIgnore;
        return Next::kGoOn;
    }
    if (is_first) {
        info_.kind = is_bare_ ? DocumentKind::kArray : DocumentKind::kObject;
    } else {
        note(DamageKind::kSecondDocument, *p);
    }
    ++info_.num_documents;
    ++*p;
    state_ = is_bare_ ? State::kEvents : State::kFirstKey;
    info_.saw_trace_events |= is_bare_;
    array_state_ = {};
    return Next::kGoOn;
}

DocumentReader::Next DocumentReader::key(const char** p) {
    if (**p == '}') {
        if (state_ == State::kKey) note(DamageKind::kTrailingComma, *p);
        ++*p;
        state_ = State::kStart;
        return Next::kGoOn;
    }
    if (**p != '"') return unreadable(*p, p);
    if (!is_retry_due(*p)) return Next::kNeedMore;
    Value text;
    values_.begin(span_.end);
    const char* const after = values_.string(*p, &text);
    if (after == nullptr) {
        const bool too_long = static_cast<size_t>(span_.end - *p) > kMaxMemberBytes;
        return too_long ? unreadable(*p, p) : need_more(*p);
    }
    decode_string(text.text(), &key_);
    *p = after;
    state_ = State::kColon;
    return Next::kGoOn;
}

DocumentReader::Next DocumentReader::colon(const char** p) {
    if (**p != ':') return unreadable(*p, p);
    ++*p;
    state_ = State::kValue;
    return Next::kGoOn;
}

DocumentReader::Next DocumentReader::value(const char** p) {
    if (key_ != kEventsKey || **p != '[') return plain_value(p);
    if (info_.saw_trace_events && info_.num_documents == 1) note(DamageKind::kDuplicateKey, *p);
    info_.saw_trace_events = true;
    ++*p;
    array_state_ = {};
    state_ = State::kEvents;
    return Next::kGoOn;
}

DocumentReader::Next DocumentReader::plain_value(const char** p) {
    if (!is_retry_due(*p)) return Next::kNeedMore;
    Value value;
    values_.begin(span_.end);
    const char* const after = values_.value(*p, &value);
    if (after == nullptr) {
        if (values_.failure() == ScanStatus::kBad) return unreadable(values_.failed_at(), p);
        if (static_cast<size_t>(span_.end - *p) <= kMaxMemberBytes) return need_more(*p);
        note(DamageKind::kOversizedMetadata, *p);
        skipper_.begin();
        state_ = State::kSkipValue;
        return Next::kGoOn;
    }
    // A number may go on in the next window.
    if (after == span_.end && !is_final_) return need_more(*p);
    add_metadata(value);
    *p = after;
    state_ = State::kAfterValue;
    return Next::kGoOn;
}

void DocumentReader::add_metadata(const Value& value) {
    const size_t quotes = value.kind == ValueKind::kString ? 1 : 0;
    const size_t size = value.length + 2 * quotes;
    const bool fits = size <= kMaxMemberBytes && metadata_bytes_ + size <= kMaxMetadataBytes &&
                      info_.metadata.size() < kMaxMetadataMembers;
    if (!fits) {
        note(DamageKind::kOversizedMetadata, value.start());
        return;
    }
    if (values_.damage().any()) batch_->damage.add(values_.damage(), span_.begin, span_.base);
    metadata_bytes_ += size;
    info_.metadata.emplace_back(key_, std::string(value.start(), size));
}

DocumentReader::Next DocumentReader::skip_value(const char** p) {
    const char* const after = skipper_.skip(*p, span_.end);
    *p = after == nullptr ? span_.end : after;
    if (after == nullptr) return Next::kNeedMore;
    state_ = State::kAfterValue;
    return Next::kGoOn;
}

DocumentReader::Next DocumentReader::after_value(const char** p) {
    if (**p != ',' && **p != '}') return unreadable(*p, p);
    state_ = **p == ',' ? State::kKey : State::kStart;
    ++*p;
    return Next::kGoOn;
}

DocumentReader::Next DocumentReader::events(uint64_t target, const char** p) {
    if (!is_retry_due(*p)) return Next::kNeedMore;
    switch (array_.run(span_, is_final_, is_bare_, target, &array_state_, p)) {
        case ArrayStop::kTarget:
            return Next::kTarget;
        case ArrayStop::kEnd:
            state_ = is_bare_ ? State::kStart : State::kAfterValue;
            return Next::kGoOn;
        default:
            return array_state_.step == ArrayStep::kResync ? Next::kNeedMore : need_more(*p);
    }
}

// A member around the events cannot be read: goes on at the events, if they are still to come.
DocumentReader::Next DocumentReader::unreadable(const char* at, const char** p) {
    note(DamageKind::kUnreadableMember, at);
    state_ = State::kResync;
    return resync(p);
}

DocumentReader::Next DocumentReader::resync(const char** p) {
    const char* const found = find_text(*p, span_.end, kQuotedEventsKey);
    if (found != nullptr) {
        *p = found + kQuotedEventsKey.size();
        key_ = kEventsKey;
        state_ = State::kColon;
        return Next::kGoOn;
    }
    const auto left = static_cast<size_t>(span_.end - *p);
    if (left >= kQuotedEventsKey.size()) *p = span_.end - (kQuotedEventsKey.size() - 1);
    return Next::kNeedMore;
}

DocumentReader::Next DocumentReader::need_more(const char* start) {
    retry_at_ = span_.offset(start);
    retry_bytes_ = 2 * static_cast<uint64_t>(span_.end - start);
    return Next::kNeedMore;
}

bool DocumentReader::is_retry_due(const char* start) const {
    return is_final_ || retry_at_ != span_.offset(start) ||
           static_cast<uint64_t>(span_.end - start) >= retry_bytes_;
}

// The input ends; p is where reading stands.
void DocumentReader::finish(const char* p) {
    const bool is_whole = state_ == State::kStart || state_ == State::kIgnore;
    info_.ended_cleanly = is_whole && info_.num_documents > 0;
    if (is_whole || info_.num_documents == 0) return;
    const bool counted = state_ == State::kEvents && array_state_.truncated;
    if (!counted && state_ != State::kResync)
        note(DamageKind::kTruncated, p < span_.end ? p : span_.end);
}

}  // namespace trnscope
