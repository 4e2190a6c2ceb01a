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

bool is_plain_string(const Value& value) {
    return value.kind == ValueKind::kString && value.notes == 0;
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
    : arg_keys_(arg_keys), batch_(batch), args_(arg_keys.size()), args_seen_(arg_keys.size()) {
    for (uint32_t k = 0; k < args_.size(); ++k) args_[k].is_text = arg_keys.is_text(k);
    strings_.intern({kNothing, 0});
}

void EventParser::finish_batch() {
    if (strings_.take(&batch_->strings, &batch_->string_table)) {
        strings_.intern({kNothing, 0});
        for (Category& category : categories_) category.id = LocalTable::kUnknown;
        memo_.forget_ids();
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
    fields_seen_ = 0;
    times_read_ = 0;
    args_keys_ = &categories_[0].args_keys;
    begin_ = p;
    pid_end_ = nullptr;
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
    member_ = *p;
    if (keys->follow(p)) {
        if (keys->code() == KeyPredictor::kClosed) return Next::kEnd;
        if (**p <= ' ') *p = skip_space(*p);
        return Next::kMember;
    }
    return read_member(p, keys, code_of);
}

// The text between two members was not foreseen.
template <typename CodeOf>
EventParser::Next EventParser::read_member(const char** p, KeyPredictor* keys, CodeOf code_of) {
    const char* const begin = *p;
    const char* q = *begin == '{' ? skip_space(begin + 1) : values_.separator(begin, '}');
    if (q == nullptr) return Next::kFailed;
    if (*q == '}') {
        *p = q + 1;
        keys->learn_end({begin, static_cast<size_t>(*p - begin)}, !values_.damage().any());
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
    if (pass_head(&p) && (p = read_name(p)) == nullptr) return nullptr;
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
    if (name == Field::kOther) return values_.skip(p);
    if (fields_seen_ & bit(name)) note_duplicate();
    fields_seen_ |= bit(name);
    Value* const value = &fields_[static_cast<size_t>(name)];
    switch (name) {
        case Field::kPh:
        case Field::kBp:
        case Field::kS:
            return values_.letter(p, value);
        case Field::kName:
            return scan_name(p);
        case Field::kCat:
            return scan_category(p);
        case Field::kPid:
            return scan_pid(p);
        case Field::kTid:
            return scan_tid(p);
        case Field::kTs:
        case Field::kDur:
            return scan_time(name, p);
        case Field::kArgs:
            return scan_args(p, value);
        default:
            return values_.value(p, value);
    }
}

// At an event's beginning: moves *p to the value of its name if the text until there is known.
bool EventParser::pass_head(const char** p) {
    Category* const category = place_of(*p + category_at_);
    const Stretch& head = category->head;
    if (!head.is_at(*p)) return false;
    category_ = category;
    args_keys_ = &category->args_keys;
    head.get(*p, fields_.data());
    fields_seen_ = head.fields() | bit(Field::kName);
    field_keys_.resume(head.place());
    *p = skip_space(*p + head.length());
    return true;
}

const char* EventParser::read_name(const char* p) {
    Value* const value = &fields_[static_cast<size_t>(Field::kName)];
    return *p == '"' ? values_.string(p, value) : values_.value(p, value);
}

// The text before may be a head to remember.
const char* EventParser::scan_name(const char* p) {
    constexpr uint32_t kHead = bit(Field::kPh) | bit(Field::kCat);
    constexpr size_t kMaxCategoryAt = kPadding - 16;
    const Value& ph = fields_[static_cast<size_t>(Field::kPh)];
    const Value& cat = fields_[static_cast<size_t>(Field::kCat)];
    const bool is_head = fields_seen_ == (kHead | bit(Field::kName)) && is_plain_string(ph) &&
                         is_plain_string(cat) && values_.is_plain();
    if (is_head) {
        const auto at = static_cast<size_t>(cat.start() - begin_);
        if (at <= kMaxCategoryAt) {
            category_at_ = at;
            category_->head.learn(begin_, p, {{{Field::kPh, ph}, {Field::kCat, cat}}},
                                  field_keys_.place());
        }
    }
    return read_name(p);
}

// Most events are on the track of the one before.
const char* EventParser::scan_pid(const char* p) {
    const bool is_known = !(fields_seen_ & bit(Field::kTid)) && track_.is_at(p) &&
                          !is_digit(p[track_.length()]) && !continues_number(p[track_.length()]);
    if (is_known) {
        track_.get(p, fields_.data());
        fields_seen_ |= track_.fields();
        field_keys_.resume(track_.place());
        pid_end_ = nullptr;
        return p + track_.length();
    }
    pid_at_ = p;
    pid_end_ = values_.value(p, &fields_[static_cast<size_t>(Field::kPid)]);
    return pid_end_;
}

const char* EventParser::scan_tid(const char* p) {
    const Value& pid = fields_[static_cast<size_t>(Field::kPid)];
    Value& tid = fields_[static_cast<size_t>(Field::kTid)];
    const char* const after = values_.value(p, &tid);
    const bool is_track = pid_end_ == member_ && after != nullptr && is_short_number(pid) &&
                          is_short_number(tid) && values_.is_plain();
    if (is_track) {
        track_.learn(pid_at_, after, {{{Field::kPid, pid}, {Field::kTid, tid}}},
                     field_keys_.place());
    }
    return after;
}

const char* EventParser::scan_category(const char* p) {
    category_ = place_of(p);
    args_keys_ = &category_->args_keys;
    const std::string_view text = category_->text;
    Value* const value = &fields_[static_cast<size_t>(Field::kCat)];
    const bool is_known = category_->id != LocalTable::kUnknown && *p == '"' &&
                          equal_bytes(p + 1, text.data(), text.size()) && p[1 + text.size()] == '"';
    if (!is_known) {
        category_->id = LocalTable::kUnknown;
        category_->head.forget();
        return values_.value(p, value);
    }
    *value = {p + 1, static_cast<uint32_t>(text.size()), ValueKind::kString, 0};
    return p + text.size() + 2;
}

const char* EventParser::scan_time(Field name, const char* p) {
    const bool is_dur = name == Field::kDur;
    if (const char* const after = read_plain_ns(p, &times_[is_dur])) {
        times_read_ |= bit(name);
        return after;
    }
    times_read_ &= ~bit(name);
    return values_.value(p, &fields_[static_cast<size_t>(name)]);
}

void EventParser::note_duplicate() {
    values_.damage().note(DamageKind::kDuplicateKey, std::strchr(member_, '"'));
}

void EventParser::clear_args() {
    ++args_round_;
    num_args_seen_ = 0;
}

const char* EventParser::scan_args(const char* p, Value* args) {
    clear_args();
    if (*p != '{') return values_.value(p, args);
    const char* const begin = p;
    args_keys_->reset();
    for (;;) {
        const Next next =
            next_member(&p, args_keys_, [this](const Value& key) { return find_arg(key); });
        if (next == Next::kFailed) return nullptr;
        if (next == Next::kEnd) break;
        p = scan_arg(args_keys_->code(), p);
        if (p == nullptr) return nullptr;
    }
    *args = {begin, static_cast<uint32_t>(p - begin), ValueKind::kObject, 0};
    return p;
}

// The value at p of a member of args, which is the k-th requested key or none of them.
const char* EventParser::scan_arg(uint32_t k, const char* p) {
    if (k == ArgKeys::kNone) return values_.skip(p);
    ArgValue& arg = args_[k];
    const char* const after = read_arg(p, &arg);
    if (after == nullptr) return nullptr;
    if (arg.seen_in == args_round_) {
        note_duplicate();
    } else {
        arg.seen_in = args_round_;
        args_seen_[num_args_seen_++] = k;
    }
    return after;
}

const char* EventParser::read_integer(const char* p, ArgValue* arg) {
    const bool has_minus = *p == '-';
    uint64_t magnitude;
    const char* const after = read_digits(p + has_minus, &magnitude);
    arg->is_known = after != nullptr && !continues_number(*after);
    if (!arg->is_known) return values_.value(p, &arg->value);
    arg->is_negative = has_minus && magnitude != 0;
    arg->bits = has_minus ? ~magnitude + 1 : magnitude;
    return after;
}

const char* EventParser::read_arg(const char* p, ArgValue* arg) {
    arg->is_negative = false;
    arg->is_known = false;
    if (!arg->is_text) return read_integer(p, arg);
    if (*p != '[' && *p != '{') return values_.value(p, &arg->value);
    uint32_t id;
    const char* const after = values_.container(p, &arg->value, &id);
    arg->is_known = id != ValueMemo::kNoId;
    arg->bits = id;
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
    EventRow row;
    uint8_t flags = 0;
    row.ph = ph_of();
    row.ts_ns = time_of(Field::kTs, kHasTs, &flags);
    row.dur_ns = time_of(Field::kDur, kHasDur, &flags);
    row.id = id_of(&flags);
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
    row.category = category_of(field(Field::kCat));
    row.name = intern(field(Field::kName));
    row.track = track_of(field(Field::kPid), field(Field::kTid));
    row.args_offset = has_args ? span_.offset(args.start()) : 0;
    row.args_length = has_args ? args.length + quotes : 0;
    row.flags = flags;
    const auto index = static_cast<uint32_t>(batch_->events.size());
    add_attributes(index);
    if (row.ph == 'C' && args.kind == ValueKind::kObject) add_counters(index);
    batch_->events.push_back(row);
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

int64_t EventParser::time_of(Field name, uint8_t flag, uint8_t* flags) {
    if (!(times_read_ & bit(name))) return odd_time_of(field(name), flag, flags);
    *flags |= flag;
    return times_[name == Field::kDur];
}

int64_t EventParser::odd_time_of(const Value& value, uint8_t flag, uint8_t* flags) {
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
    constexpr uint32_t kIds = bit(Field::kId) | bit(Field::kId2);
    return fields_seen_ & kIds ? read_id(flags) : 0;
}

uint64_t EventParser::read_id(uint8_t* flags) {
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

uint32_t EventParser::category_of(const Value& category) {
    const bool has_place = (fields_seen_ & bit(Field::kCat)) != 0;
    if (has_place && category_->id != LocalTable::kUnknown) return strings_.use(category_->id);
    const uint32_t id = intern(category);
    if (has_place && category.kind == ValueKind::kString && category.notes == 0) {
        category_->text = strings_.text(id);
        category_->id = id;
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
    for (size_t i = 0; i < num_args_seen_; ++i) {
        const uint32_t k = args_seen_[i];
        add_attribute(row, k, args_[k]);
    }
}

void EventParser::add_attribute(uint32_t row, uint32_t k, const ArgValue& arg) {
    if (!arg.is_known && arg.value.kind == ValueKind::kNull) return;
    AttributeEntry entry{arg.bits, row, arg.is_negative};
    if (arg.is_text) {
        entry.value = text_id(arg);
    } else if (!arg.is_known && !integer_of(arg.value, &entry.value, &entry.negative)) {
        return;
    }
    batch_->attributes[k].push_back(entry);
}

uint32_t EventParser::text_id(const ArgValue& arg) {
    if (arg.is_known) return strings_.use(static_cast<uint32_t>(arg.bits));
    const uint32_t id = intern(arg.value);
    const bool is_container =
        arg.value.kind == ValueKind::kArray || arg.value.kind == ValueKind::kObject;
    if (is_container) memo_.set_id(arg.value.text(), id);
    return id;
}

bool EventParser::integer_of(const Value& value, uint64_t* bits, bool* negative) {
    if (value.kind != ValueKind::kNumber && value.kind != ValueKind::kString) return false;
    return to_integer(text_of(value, &scratch_), bits, negative);
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
    CounterColumns& columns = batch_->counters;
    for (const uint32_t id : order) {
        double number;
        const Value& last = last_counter_[id];
        if (last.kind != ValueKind::kNumber || !to_double(last.text(), &number)) continue;
        columns.rows.push_back(row);
        columns.keys.push_back(id);
        columns.values.push_back(number);
    }
}

std::string_view EventParser::odd_text_of(const Value& value, std::string* scratch) {
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

}  // namespace trnscope
