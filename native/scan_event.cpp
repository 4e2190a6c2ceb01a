#include "scan_event.h"

#include <cstring>

#include "scan_number.h"

namespace trnscope {
namespace {

constexpr size_t kTrackNumberLength = 8;
constexpr size_t kReadable = 16;  // bytes after any text that may be read
constexpr char kNothing[kReadable] = {};

bool is_short_number(const Value& value) {
    return value.kind == ValueKind::kNumber && value.length <= kTrackNumberLength;
}

// The first part of a track's text: the length of pid in 4 bytes, and pid. Then comes tid.
void begin_track(std::string_view pid, std::string* out) {
    out->clear();
    for (unsigned shift = 0; shift < 32; shift += 8) {
        out->push_back(static_cast<char>(pid.size() >> shift & 0xFF));
    }
    out->append(pid);
}

// Makes some bytes after the text readable.
std::string_view padded(std::string* text) {
    const size_t length = text->size();
    text->append(kReadable, '\0');
    return {text->data(), length};
}

}  // namespace

std::pair<std::string_view, std::string_view> split_track(std::string_view track) {
    size_t length = 0;
    for (unsigned i = 0; i < 4; ++i) {
        length |= static_cast<size_t>(static_cast<unsigned char>(track[i])) << (8 * i);
    }
    return {track.substr(4, length), track.substr(4 + length)};
}

EventParser::EventParser(const ArgKeys& arg_keys, Batch* batch)
    : arg_keys_(arg_keys), batch_(batch), args_(arg_keys.size()), has_arg_(arg_keys.size(), 0) {
    last_category_id_ = strings_.intern({kNothing, 0});
}

void EventParser::finish_batch() {
    if (strings_.take(&batch_->strings, &batch_->string_table)) {
        last_category_.clear();
        last_category_id_ = strings_.intern({kNothing, 0});
    }
    if (tracks_.take(&batch_->tracks, &batch_->track_table)) track_memo_.fill({});
}

ScanStatus EventParser::failed(const char* at, ScanStatus status) {
    failed_at_ = at;
    return status;
}

ScanStatus EventParser::scan(const Span& span, const char* p) {
    span_ = span;
    values_.begin(span.end);
    clear_args();
    fields_.fill({});
    fields_seen_ = 0;
    end_ = scan_members(p);
    if (end_ != nullptr) return ScanStatus::kOk;
    return failed(values_.failed_at(), values_.failure());
}

ScanStatus EventParser::scan_other(const Span& span, const char* p) {
    Value ignored;
    values_.begin(span.end);
    end_ = values_.value(p, &ignored);
    if (end_ != nullptr) return ScanStatus::kOk;
    return failed(values_.failed_at(), values_.failure());
}

// Moves *p from an opening brace or the end of a member to the value of the next member.
// `code_of` maps a key to what keys->code() then tells.
template <typename CodeOf>
inline EventParser::Next EventParser::next_member(const char** p, KeyPredictor* keys,
                                                  CodeOf code_of) {
    const char* const begin = *p;
    member_ = begin;
    if (keys->follow(p)) {
        *p = skip_space(*p);
        return Next::kMember;
    }
    const char* q = *begin == '{' ? skip_space(begin + 1) : values_.separator(begin, '}');
    if (q == nullptr) return Next::kFailed;
    if (*q == '}') {
        *p = q + 1;
        return Next::kEnd;
    }
    Value key;
    if (*q != '"') return values_.fail(q), Next::kFailed;
    if ((q = values_.string(q, &key)) == nullptr) return Next::kFailed;
    if ((q = values_.colon(q)) == nullptr) return Next::kFailed;
    const auto length = static_cast<size_t>(q - begin);
    // Damaged text must be read again each time, so that it is counted.
    keys->learn({begin, length}, !values_.damage().any(), key.text(), code_of(key));
    *p = q;
    return Next::kMember;
}

const char* EventParser::scan_members(const char* p) {
    field_keys_.reset();
    for (;;) {
        const Next next =
            next_member(&p, &field_keys_, [this](const Value& key) { return field_code(key); });
        if (next != Next::kMember) return next == Next::kEnd ? p : nullptr;
        p = scan_field(static_cast<Field>(field_keys_.code()), p);
        if (p == nullptr) return nullptr;
    }
}

uint32_t EventParser::field_code(const Value& key) {
    if (!(key.notes & kNoteEscaped)) return static_cast<uint32_t>(field_of(key.text()));
    decode_string(key.text(), &scratch_);
    return static_cast<uint32_t>(field_of(scratch_));
}

// The value at p of a member of the event.
const char* EventParser::scan_field(Field name, const char* p) {
    Value ignored;
    if (name == Field::kOther) return values_.value(p, &ignored);
    const uint32_t bit = uint32_t{1} << static_cast<unsigned>(name);
    if (fields_seen_ & bit) note_duplicate();
    fields_seen_ |= bit;
    Value* const value = &fields_[static_cast<size_t>(name)];
    if (name == Field::kArgs) return scan_args(p, value);
    return values_.value(p, value);
}

void EventParser::note_duplicate() {
    values_.damage().note(DamageKind::kDuplicateKey, std::strchr(member_, '"'));
}

void EventParser::clear_args() {
    for (const uint32_t k : args_seen_) has_arg_[k] = 0;
    args_seen_.clear();
}

const char* EventParser::scan_args(const char* p, Value* args) {
    clear_args();
    if (*p != '{') return values_.value(p, args);
    const char* const begin = p;
    args_keys_.reset();
    for (;;) {
        const Next next =
            next_member(&p, &args_keys_, [this](const Value& key) { return find_arg(key); });
        if (next == Next::kFailed) return nullptr;
        if (next == Next::kEnd) break;
        p = scan_arg(args_keys_.code(), p);
        if (p == nullptr) return nullptr;
    }
    *args = {begin, static_cast<uint32_t>(p - begin), ValueKind::kObject, 0};
    return p;
}

// The value at p of a member of args, which is the k-th requested key or none of them.
const char* EventParser::scan_arg(uint32_t k, const char* p) {
    Value value;
    const char* const after = values_.value(p, &value);
    if (k == ArgKeys::kNone || after == nullptr) return after;
    if (has_arg_[k]) {
        note_duplicate();
    } else {
        has_arg_[k] = 1;
        args_seen_.push_back(k);
    }
    args_[k] = value;
    return after;
}

uint32_t EventParser::find_arg(const Value& key) {
    if (!(key.notes & (kNoteEscaped | kNoteInvalidUtf8))) return arg_keys_.find(key.text());
    return arg_keys_.find(text_of(key, &scratch_));
}

bool EventParser::commit() {
    if (!is_readable(field(Field::kName)) || !is_readable(field(Field::kCat))) return false;
    add_row();
    if (values_.damage().any()) batch_->damage.add(values_.damage(), span_.begin, span_.base);
    return true;
}

bool EventParser::is_readable(const Value& text) {
    if (!(text.notes & kNoteBadEscape)) return true;
    failed_at_ = text.begin + find_bad_escape(text.text());
    return false;
}

void EventParser::add_row() {
    EventColumns& events = batch_->events;
    const auto row = static_cast<uint32_t>(events.num_events());
    uint8_t flags = 0;
    const uint8_t ph = ph_of();
    const int64_t ts_ns = time_of(field(Field::kTs), kHasTs, &flags);
    const int64_t dur_ns = time_of(field(Field::kDur), kHasDur, &flags);
    const uint64_t id = id_of(&flags);
    if (is_text(Field::kBp, 'e')) flags |= kBindEnclosing;
    if (is_text(Field::kS, 'g')) flags |= kScopeGlobal;
    const EventDamage& damage = values_.damage();
    if (damage.any()) {
        for (const DamageKind kind :
             {DamageKind::kControlCharacter, DamageKind::kInvalidUtf8, DamageKind::kBadEscape,
              DamageKind::kLoneSurrogate, DamageKind::kTrailingComma}) {
            if (damage.has(kind)) flags |= kRepaired;
        }
    }
    const Value& args = field(Field::kArgs);
    const bool has_args = args.kind != ValueKind::kAbsent;
    const uint32_t quotes = args.kind == ValueKind::kString ? 2 : 0;
    events.category.push_back(category_of(field(Field::kCat)));
    events.name.push_back(intern(field(Field::kName)));
    events.track.push_back(track_of(field(Field::kPid), field(Field::kTid)));
    events.ts_ns.push_back(ts_ns);
    events.dur_ns.push_back(dur_ns);
    events.id.push_back(id);
    events.args_offset.push_back(has_args ? span_.offset(args.start()) : 0);
    events.args_length.push_back(has_args ? args.length + quotes : 0);
    events.flags.push_back(flags);
    if (!args_seen_.empty()) add_attributes(row);
    if (ph == 'C' && args.kind == ValueKind::kObject) add_counters(row);
    events.ph.push_back(ph);
}

uint8_t EventParser::ph_of() {
    const Value& value = field(Field::kPh);
    if (value.kind != ValueKind::kString || value.length == 0) return 0;
    const std::string_view text = text_of(value, &scratch_);
    const auto first = static_cast<uint8_t>(text.empty() ? 0 : text.front());
    return first < 0x80 ? first : 0;
}

bool EventParser::is_text(Field name, char expected) {
    const Value& value = field(name);
    if (value.kind != ValueKind::kString || value.length == 0) return false;
    const std::string_view text = text_of(value, &scratch_);
    return text.size() == 1 && text.front() == expected;
}

int64_t EventParser::time_of(const Value& value, uint8_t flag, uint8_t* flags) {
    if (value.kind == ValueKind::kAbsent) return 0;
    if (value.kind == ValueKind::kNull) {
        values_.damage().note(DamageKind::kNullTime, value.start());
        return 0;
    }
    int64_t ns = 0;
    const bool is_string = value.kind == ValueKind::kString;
    if (value.kind == ValueKind::kNumber ? to_ns(value.text(), &ns)
                                         : is_string && to_ns(text_of(value, &scratch_), &ns)) {
        if (is_string) values_.damage().note(DamageKind::kTextTime, value.start());
        *flags |= flag;
        return ns;
    }
    *flags |= kNonFiniteTime;
    if (value.kind != ValueKind::kNonFinite) {
        values_.damage().note(DamageKind::kUnreadableTime, value.start());
    }
    return 0;
}

uint64_t EventParser::id_of(uint8_t* flags) {
    Value value = field(Field::kId);
    const Value& scoped = field(Field::kId2);
    if (value.kind == ValueKind::kAbsent && scoped.kind == ValueKind::kObject) {
        MemberReader members(scoped.text());
        Value key;
        Value member;
        while (members.next(&key, &member)) {
            const std::string_view scope = text_of(key, &scratch_);
            if (scope == "local" || scope == "global") value = member;
        }
    }
    if (value.kind == ValueKind::kAbsent || value.kind == ValueKind::kNull) return 0;
    *flags |= kHasId;
    return number_or_hash(value);
}

uint64_t EventParser::number_or_hash(const Value& value) {
    const std::string_view text = text_of(value, &scratch_);
    uint64_t bits;
    bool negative;
    const bool may_be_number = value.kind == ValueKind::kNumber || value.kind == ValueKind::kString;
    if (may_be_number && to_integer(text, &bits, &negative)) return bits;
    return stable_hash(text);
}

// Most events have the category of the one before.
uint32_t EventParser::category_of(const Value& category) {
    const bool is_plain = category.kind == ValueKind::kString && category.notes == 0;
    if (is_plain && category.text() == last_category_) return strings_.use(last_category_id_);
    const uint32_t id = intern(category);
    if (is_plain) {
        last_category_ = category.text();
        last_category_id_ = id;
    }
    return id;
}

uint32_t EventParser::track_of(const Value& pid, const Value& tid) {
    TrackMemo* memo = nullptr;
    uint64_t pid_word = 0;
    uint64_t tid_word = 0;
    if (is_short_number(pid) && is_short_number(tid)) {
        pid_word = load_prefix(pid.begin, pid.length);
        tid_word = load_prefix(tid.begin, tid.length);
        const uint64_t hash = (pid_word * 31 + tid_word) * 0x9E3779B97F4A7C15ull;
        memo = &track_memo_[hash >> 56];
        if (memo->used && memo->pid == pid_word && memo->tid == tid_word) {
            return tracks_.use(memo->local_id);
        }
    }
    begin_track(text_of(pid, &scratch_), &pair_scratch_);
    pair_scratch_.append(text_of(tid, &scratch_));
    const uint32_t track = tracks_.intern(padded(&pair_scratch_));
    if (memo != nullptr) *memo = {pid_word, tid_word, track, true};
    return track;
}

void EventParser::add_attributes(uint32_t row) {
    for (const uint32_t k : args_seen_) {
        if (args_[k].kind != ValueKind::kNull) add_attribute(row, k, args_[k]);
    }
}

void EventParser::add_attribute(uint32_t row, uint32_t k, const Value& value) {
    AttributeColumn& column = batch_->events.attributes[k];
    if (arg_keys_.is_text(k)) {
        column.string_ids.push_back(intern(value));
        column.rows.push_back(row);
        return;
    }
    uint64_t bits;
    bool negative;
    if (value.kind != ValueKind::kNumber && value.kind != ValueKind::kString) return;
    if (!to_integer(text_of(value, &scratch_), &bits, &negative)) return;
    if (negative) column.negatives.push_back(static_cast<uint32_t>(column.integers.size()));
    column.integers.push_back(bits);
    column.rows.push_back(row);
}

// The numeric members of a counter's args. The last of a repeated key counts, in first place.
void EventParser::add_counters(uint32_t row) {
    last_counter_.clear();
    std::vector<uint32_t> order;
    MemberReader members(field(Field::kArgs).text());
    Value key;
    Value value;
    while (members.next(&key, &value)) {
        const uint32_t id = intern(key);
        const auto [place, is_new] = last_counter_.insert_or_assign(id, value);
        if (is_new) order.push_back(place->first);
    }
    CounterColumns& columns = batch_->events.counters;
    for (const uint32_t id : order) {
        double number;
        const Value& last = last_counter_[id];
        if (last.kind != ValueKind::kNumber || !to_double(last.text(), &number)) continue;
        columns.rows.push_back(row);
        columns.keys.push_back(id);
        columns.values.push_back(number);
    }
}

std::string_view EventParser::text_of(const Value& value, std::string* scratch) {
    if (value.kind == ValueKind::kAbsent || value.kind == ValueKind::kNull) return {kNothing, 0};
    if (value.kind == ValueKind::kString) {
        if (!(value.notes & (kNoteEscaped | kNoteInvalidUtf8))) return value.text();
        decode_string(value.text(), scratch);
        return padded(scratch);
    }
    if (!values_.saw_non_ascii()) return value.text();
    sanitize_utf8(value.text(), scratch);
    return padded(scratch);
}

uint32_t EventParser::intern(const Value& value) {
    return strings_.intern(text_of(value, &scratch_));
}

}  // namespace trnscope
