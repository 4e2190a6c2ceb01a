#include "scan_columns.h"

namespace trnscope {
namespace {

const uint32_t* globalize(const std::vector<LocalUse>& uses, LocalTable* local,
                          StringTable* global) {
    for (const LocalUse& use : uses) {
        if (use.id >= local->global.size()) local->global.resize(use.id + 1, LocalTable::kUnknown);
        uint32_t& id = local->global[use.id];
        if (id == LocalTable::kUnknown) id = global->intern(use.text);
    }
    return local->global.data();
}

// Adds value_of(entry) for each entry.
template <typename T, typename Entry, typename ValueOf>
void append_each(const Column<Entry>& from, Column<T>* to, ValueOf value_of) {
    const size_t n = from.size();
    const Entry* const entries = from.data();
    T* const out = to->extend(n);
    for (size_t i = 0; i < n; ++i) out[i] = value_of(entries[i]);
}

void append_events(const Column<EventRow>& from, const uint32_t* string_ids,
                   const uint32_t* track_ids, EventColumns* to) {
    using Row = const EventRow&;
    append_each(from, &to->ph, [](Row row) { return row.ph; });
    append_each(from, &to->flags, [](Row row) { return row.flags; });
    append_each(from, &to->category, [=](Row row) { return string_ids[row.category]; });
    append_each(from, &to->name, [=](Row row) { return string_ids[row.name]; });
    append_each(from, &to->track, [=](Row row) { return track_ids[row.track]; });
    append_each(from, &to->ts_ns, [](Row row) { return row.ts_ns; });
    append_each(from, &to->dur_ns, [](Row row) { return row.dur_ns; });
    append_each(from, &to->id, [](Row row) { return row.id; });
    append_each(from, &to->args_offset, [](Row row) { return row.args_offset; });
    append_each(from, &to->args_length, [](Row row) { return row.args_length; });
}

void append_integers(const Column<AttributeEntry>& from, AttributeColumn* to) {
    const auto first = static_cast<uint32_t>(to->integers.size());
    for (uint32_t i = 0; i < from.size(); ++i) {
        if (from[i].negative) to->negatives.push_back(first + i);
    }
    append_each(from, &to->integers, [](const AttributeEntry& entry) { return entry.value; });
}

void append_attribute(const Column<AttributeEntry>& from, uint32_t first_row, bool is_text,
                      const uint32_t* string_ids, AttributeColumn* to) {
    if (from.size() == 0) return;
    using Entry = const AttributeEntry&;
    if (is_text) {
        append_each(from, &to->string_ids, [=](Entry entry) { return string_ids[entry.value]; });
    } else {
        append_integers(from, to);
    }
    append_each(from, &to->rows, [=](Entry entry) { return entry.row + first_row; });
}

}  // namespace

void EventColumns::reserve_events(size_t n) {
    ph.reserve(n);
    flags.reserve(n);
    category.reserve(n);
    name.reserve(n);
    track.reserve(n);
    ts_ns.reserve(n);
    dur_ns.reserve(n);
    id.reserve(n);
    args_offset.reserve(n);
    args_length.reserve(n);
}

void Batch::clear() {
    events.clear();
    for (Column<AttributeEntry>& attribute : attributes) attribute.clear();
    counters.rows.clear();
    counters.keys.clear();
    counters.values.clear();
    damage.clear();
    strings.clear();
    tracks.clear();
}

void append_batch(const Batch& batch, const ArgKeys& arg_keys, StringTable* strings,
                  StringTable* tracks, EventColumns* segment) {
    const auto first_row = static_cast<uint32_t>(segment->num_events());
    const uint32_t* string_ids = globalize(batch.strings, batch.string_table.get(), strings);
    const uint32_t* track_ids = globalize(batch.tracks, batch.track_table.get(), tracks);
    append_events(batch.events, string_ids, track_ids, segment);
    for (uint32_t k = 0; k < arg_keys.size(); ++k) {
        append_attribute(batch.attributes[k], first_row, arg_keys.is_text(k), string_ids,
                         &segment->attributes[k]);
    }
    const CounterColumns& counters = batch.counters;
    append_each(counters.rows, &segment->counters.rows,
                [=](uint32_t row) { return row + first_row; });
    append_each(counters.keys, &segment->counters.keys,
                [=](uint32_t key) { return string_ids[key]; });
    segment->counters.values.append(counters.values);
}

}  // namespace trnscope
