#include "scan_columns.h"

namespace trnscope {
namespace {

void clear_columns(EventColumns* events) {
    events->ph.clear();
    events->flags.clear();
    events->category.clear();
    events->name.clear();
    events->track.clear();
    events->ts_ns.clear();
    events->dur_ns.clear();
    events->id.clear();
    events->args_offset.clear();
    events->args_length.clear();
    for (AttributeColumn& attribute : events->attributes) {
        attribute.rows.clear();
        attribute.integers.clear();
        attribute.negatives.clear();
        attribute.string_ids.clear();
    }
    events->counters.rows.clear();
    events->counters.keys.clear();
    events->counters.values.clear();
}

const uint32_t* globalize(const std::vector<LocalUse>& uses, LocalTable* local,
                          StringTable* global) {
    for (const LocalUse& use : uses) {
        if (use.id >= local->global.size()) local->global.resize(use.id + 1, LocalTable::kUnknown);
        uint32_t& id = local->global[use.id];
        if (id == LocalTable::kUnknown) id = global->intern(use.text);
    }
    return local->global.data();
}

void append_mapped(const Column<uint32_t>& from, const uint32_t* map, Column<uint32_t>* to) {
    uint32_t* out = to->extend(from.size());
    for (size_t i = 0; i < from.size(); ++i) out[i] = map[from[i]];
}

void append_shifted(const Column<uint32_t>& from, size_t shift, Column<uint32_t>* to) {
    uint32_t* out = to->extend(from.size());
    for (size_t i = 0; i < from.size(); ++i) out[i] = from[i] + static_cast<uint32_t>(shift);
}

}  // namespace

void Batch::clear() {
    clear_columns(&events);
    damage.clear();
    strings.clear();
    tracks.clear();
}

void append_batch(const Batch& batch, StringTable* strings, StringTable* tracks,
                  EventColumns* segment) {
    const EventColumns& from = batch.events;
    const size_t first_row = segment->num_events();
    const uint32_t* string_ids = globalize(batch.strings, batch.string_table.get(), strings);
    const uint32_t* track_ids = globalize(batch.tracks, batch.track_table.get(), tracks);
    segment->ph.append(from.ph);
    segment->flags.append(from.flags);
    append_mapped(from.category, string_ids, &segment->category);
    append_mapped(from.name, string_ids, &segment->name);
    append_mapped(from.track, track_ids, &segment->track);
    segment->ts_ns.append(from.ts_ns);
    segment->dur_ns.append(from.dur_ns);
    segment->id.append(from.id);
    segment->args_offset.append(from.args_offset);
    segment->args_length.append(from.args_length);
    for (size_t k = 0; k < from.attributes.size(); ++k) {
        const AttributeColumn& values = from.attributes[k];
        AttributeColumn& to = segment->attributes[k];
        append_shifted(values.negatives, to.rows.size(), &to.negatives);
        append_shifted(values.rows, first_row, &to.rows);
        to.integers.append(values.integers);
        append_mapped(values.string_ids, string_ids, &to.string_ids);
    }
    append_shifted(from.counters.rows, first_row, &segment->counters.rows);
    append_mapped(from.counters.keys, string_ids, &segment->counters.keys);
    segment->counters.values.append(from.counters.values);
}

}  // namespace trnscope
