#include "place_rows.h"

#include "scan_columns.h"

namespace trnscope {
namespace {

constexpr uint8_t kTimed = kHasTs | kHasDur;

// Looks rows up in the tables; notes what they do not hold yet.
class Lookup {
  public:
    Lookup(const EventRows& rows, const PlaceTables& tables, PlacedRows* out)
        : rows_(rows), tables_(tables), out_(out) {}

    // The kind, number and track of a row; false where it is special or something is new.
    bool find(size_t row, uint8_t* kind, uint16_t* number, uint32_t* track) {
        const uint32_t category = rows_.category[row];
        *number = category < tables_.num_categories ? tables_.number[category] : kNoNumber;
        if (*number >= tables_.num_numbers) {
            out_->new_categories.push_back(category);
            return false;
        }
        return find_kind(row, *number, kind) && find_track(row, track);
    }

  private:
    bool find_kind(size_t row, uint16_t number, uint8_t* kind) {
        const uint32_t name = rows_.name[row];
        *kind = tables_.kind[number];
        switch (static_cast<Placing>(tables_.placing[number])) {
            case Placing::kByCategory:
                return true;
            case Placing::kNameSeen:
                if (name < tables_.num_seen && tables_.seen_kind[name] != kNoKind) return true;
                out_->new_seen.push_back(name);
                return false;
            case Placing::kByName:
                *kind = name < tables_.num_names ? tables_.name_kind[name] : kNoKind;
                if (*kind == kNoKind) out_->new_names.push_back(name);
                return *kind != kNoKind;
            case Placing::kSpecial:
                break;
        }
        return false;
    }

    bool find_track(size_t row, uint32_t* track) {
        const uint32_t scanned = rows_.track[row];
        *track = scanned < tables_.num_tracks ? tables_.host_track[scanned] : kNoTrack;
        if (*track == kNoTrack) out_->new_tracks.push_back(scanned);
        return *track != kNoTrack;
    }

    const EventRows& rows_;
    const PlaceTables& tables_;
    PlacedRows* out_;
};

bool is_plain_time(const EventRows& rows, size_t row, const PlaceTables& tables) {
    const int64_t start = rows.ts_ns[row], dur = rows.dur_ns[row];
    return (rows.flags[row] & kTimed) == kTimed && start != 0 && start > -tables.start_limit_ns &&
           start < tables.start_limit_ns && dur >= 0 && dur < tables.dur_limit_ns;
}

void reserve(size_t n, PlacedRows* out) {
    out->track.reserve(n);
    out->kind.reserve(n);
    out->category.reserve(n);
    out->name.reserve(n);
    out->start_ns.reserve(n);
    out->dur_ns.reserve(n);
    out->args_offset.reserve(n);
    out->args_length.reserve(n);
    out->place.assign(n, kNotPlaced);
}

}  // namespace

PlacedRows place_rows(const EventRows& rows, const PlaceTables& tables) {
    PlacedRows out;
    reserve(rows.count, &out);
    Lookup lookup(rows, tables, &out);
    for (size_t row = 0; row < rows.count; ++row) {
        if (rows.phase[row] != 'X') continue;
        uint8_t kind = 0;
        uint16_t number = 0;
        uint32_t track = 0;
        if (!is_plain_time(rows, row, tables) || !lookup.find(row, &kind, &number, &track)) {
            out.rest.push_back(static_cast<int64_t>(row));
            continue;
        }
        out.place[row] = static_cast<uint32_t>(out.track.size());
        out.track.push_back(track);
        out.kind.push_back(kind);
        out.category.push_back(number);
        out.name.push_back(rows.name[row]);
        out.start_ns.push_back(rows.ts_ns[row]);
        out.dur_ns.push_back(rows.dur_ns[row]);
        out.args_offset.push_back(rows.args_offset[row]);
        out.args_length.push_back(rows.args_length[row]);
    }
    return out;
}

}  // namespace trnscope
