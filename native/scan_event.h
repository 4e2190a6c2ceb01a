// One event's JSON object to one row of columns.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scan_columns.h"
#include "scan_keys.h"
#include "scan_predict.h"
#include "scan_stretch.h"
#include "scan_value.h"

namespace trnscope {

// The text at hand: [begin, end), followed by kPadding zero bytes; `begin` is at file offset
// `base`.
struct Span {
    const char* begin;
    const char* end;
    uint64_t base;

    uint64_t offset(const char* p) const { return base + static_cast<uint64_t>(p - begin); }
    const char* at(uint64_t offset) const { return begin + (offset - base); }
    uint64_t end_offset() const { return offset(end); }
};

// The pid and tid texts of a track, which are one string in the table of tracks.
std::pair<std::string_view, std::string_view> split_track(std::string_view track);

// Reads in two passes: the first finds where the members are and that the text is well formed,
// the second turns them into a row. So an event that ends too early or is damaged leaves nothing.
class EventParser {
  public:
    EventParser(const ArgKeys& arg_keys, Batch* batch);

    // First pass over the object at p. kOk: end() is after it. Else failed_at() says where.
    ScanStatus scan(const Span& span, const char* p);
    const char* end() const { return end_; }
    const char* failed_at() const { return failed_at_; }
    bool has_ph() const { return (fields_seen_ & bit(Field::kPh)) != 0; }

    // Second pass: adds the row. False if the name or category cannot be read; failed_at() says
    // where.
    bool commit();

    // Ends the batch, which then lists the strings and tracks that it uses.
    void finish_batch();

    // Reads the value at p; for elements that are no events.
    ScanStatus scan_other(const Span& span, const char* p);

  private:
    // A requested member of args. `bits` is a whole number, or the id of a text, that was known
    // as soon as the value was read.
    struct ArgValue {
        Value value;
        uint64_t bits = 0;
        uint64_t seen_in = 0;  // the last args that had it, as args_round_ counts them
        bool is_known = false;
        bool is_negative = false;
        bool is_text = false;
    };
    // What is known of one of the categories with the same hash: the last one's text and id, and
    // which args such events have.
    struct Category {
        std::string_view text;  // as the local table holds it
        uint32_t id = LocalTable::kUnknown;
        KeyPredictor args_keys{ArgKeys::kNone};
        Stretch head;  // an event's text to its name, with ph and this category
    };
    struct TrackMemo {
        uint64_t pid = 0;
        uint64_t tid = 0;
        uint32_t local_id = 0;
        bool used = false;
    };

    static constexpr uint32_t bit(Field field) {
        return uint32_t{1} << static_cast<unsigned>(field);
    }
    static constexpr Value kAbsentValue{};

    const Value& field(Field field) const {
        return fields_seen_ & bit(field) ? fields_[static_cast<size_t>(field)] : kAbsentValue;
    }
    ScanStatus failed(const char* at, ScanStatus status);

    const char* scan_members(const char* p);
    enum class Next : uint8_t { kMember, kEnd, kFailed };
    template <typename CodeOf>
    Next next_member(const char** p, KeyPredictor* keys, CodeOf code_of);
    template <typename CodeOf>
    TRNSCOPE_NOINLINE Next read_member(const char** p, KeyPredictor* keys, CodeOf code_of);
    uint32_t field_code(const Value& key);
    const char* scan_field(Field name, const char* p);
    void note_duplicate();
    const char* scan_args(const char* p, Value* args);
    const char* scan_time(Field name, const char* p);
    const char* scan_category(const char* p);
    const char* read_name(const char* p);
    const char* scan_name(const char* p);
    const char* scan_pid(const char* p);
    const char* scan_tid(const char* p);
    bool pass_head(const char** p);
    Category* place_of(const char* category) {
        return &categories_[load_u64(category) * 0x9E3779B97F4A7C15ull >> 60];
    }
    const char* scan_arg(uint32_t k, const char* p);
    const char* read_arg(const char* p, ArgValue* arg);
    const char* read_integer(const char* p, ArgValue* arg);
    uint32_t find_arg(const Value& key);
    void clear_args();

    bool is_readable(const Value& text);
    void add_row();
    int64_t time_of(Field name, uint8_t flag, uint8_t* flags);
    int64_t odd_time_of(const Value& value, uint8_t flag, uint8_t* flags);
    uint64_t id_of(uint8_t* flags);
    uint64_t read_id(uint8_t* flags);
    uint64_t number_or_hash(const Value& value);
    uint8_t ph_of();
    bool is_text(Field field, char expected);
    uint32_t category_of(const Value& category);
    uint32_t track_of(const Value& pid, const Value& tid);
    void add_attributes(uint32_t row);
    void add_attribute(uint32_t row, uint32_t k, const ArgValue& arg);
    uint32_t text_id(const ArgValue& arg);
    bool integer_of(const Value& value, uint64_t* bits, bool* negative);
    void add_counters(uint32_t row);

    // A string's decoded content, nothing for null, the raw text of other values; valid UTF-8.
    // It may live in `scratch` and is followed by at least 16 readable bytes.
    TRNSCOPE_INLINE std::string_view text_of(const Value& value, std::string* scratch) {
        const bool is_plain =
            value.kind == ValueKind::kString && !(value.notes & (kNoteEscaped | kNoteInvalidUtf8));
        return is_plain ? value.text() : odd_text_of(value, scratch);
    }
    std::string_view odd_text_of(const Value& value, std::string* scratch);
    TRNSCOPE_INLINE uint32_t intern(const Value& value) {
        return strings_.intern(text_of(value, &scratch_));
    }

    const ArgKeys& arg_keys_;
    Batch* batch_;
    LocalInterner strings_;
    LocalInterner tracks_;
    std::array<TrackMemo, 256> track_memo_{};
    std::array<Category, 16> categories_;
    Category* category_ = nullptr;  // of the event, if it has one
    size_t category_at_ = 0;        // where in an event's text heads have their category
    Stretch track_;                 // from the value of pid to that of tid

    Span span_{};
    ValueMemo memo_;
    ValueScanner values_{&memo_};
    const char* end_ = nullptr;
    const char* failed_at_ = nullptr;

    KeyPredictor field_keys_{static_cast<uint32_t>(Field::kOther)};
    KeyPredictor* args_keys_ = nullptr;
    const char* begin_ = nullptr;
    const char* pid_at_ = nullptr;
    const char* pid_end_ = nullptr;
    const char* member_ = nullptr;  // text before the value that is being read, at its beginning
    std::array<Value, kNumFields> fields_;  // those in fields_seen_
    uint32_t fields_seen_ = 0;              // a bit per Field
    std::array<int64_t, 2> times_;          // ts and dur, if in times_read_
    uint32_t times_read_ = 0;               // a bit per Field
    std::vector<ArgValue> args_;            // by requested key
    std::vector<uint32_t> args_seen_;
    size_t num_args_seen_ = 0;
    uint64_t args_round_ = 0;
    std::unordered_map<uint32_t, Value> last_counter_;
    std::string scratch_;
    std::string pair_scratch_;
};

}  // namespace trnscope
