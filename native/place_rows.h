// Places a segment's plain host slices in one pass: those whose kind and track follow from small
// tables by category, name and thread. Everything else is left to the importer, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trnscope {

constexpr uint16_t kNoNumber = 0xFFFF;     // a category that was not met before
constexpr uint32_t kNoTrack = 0xFFFFFFFF;  // a thread that was not met before
constexpr uint8_t kNoKind = 0xFF;          // a name that was not looked at before
constexpr uint32_t kNotPlaced = 0xFFFFFFFF;

// A segment's events, a row each.
struct EventRows {
    const uint8_t* phase;
    const uint8_t* flags;
    const uint32_t* category;  // string ids
    const uint32_t* name;
    const uint32_t* track;  // the scanner's
    const int64_t* ts_ns;
    const int64_t* dur_ns;
    const uint64_t* args_offset;
    const uint32_t* args_length;
    size_t count;
};

// How the kind of a category's slices is found.
enum class Placing : uint8_t {
    kSpecial = 0,  // not here
    kByCategory = 1,
    kNameSeen = 2,  // by category; but its names must have been looked at
    kByName = 3,
};

struct PlaceTables {
    const uint16_t* number;  // category string id -> number
    size_t num_categories;
    const uint8_t* placing;  // by number: Placing
    const uint8_t* kind;     // by number
    size_t num_numbers;
    const uint8_t* seen_kind;  // kNameSeen, by name: anything but kNoKind means seen
    size_t num_seen;
    const uint8_t* name_kind;  // kByName, by name: the kind
    size_t num_names;
    const uint32_t* host_track;  // scanner track -> the writer's
    size_t num_tracks;
    int64_t start_limit_ns;  // both are below, the start is above minus its limit
    int64_t dur_limit_ns;
};

struct PlacedRows {
    std::vector<uint32_t> track;
    std::vector<uint8_t> kind;
    std::vector<uint16_t> category;
    std::vector<uint32_t> name;
    std::vector<int64_t> start_ns, dur_ns;
    std::vector<uint64_t> args_offset;
    std::vector<uint32_t> args_length;
    std::vector<uint32_t> place;  // by row of the segment: index in the columns above
    std::vector<int64_t> rest;    // rows of complete events that were not placed
    // What has to be looked at before these rows can be placed; with repetitions.
    std::vector<uint32_t> new_categories, new_seen, new_names, new_tracks;
};

PlacedRows place_rows(const EventRows& rows, const PlaceTables& tables);

// Of an attribute given by rows of the segment, what belongs to placed rows.
template <typename T>
void lift(const uint32_t* place, const uint32_t* rows, const T* values, size_t count,
          uint32_t first_event, std::vector<uint32_t>* events, std::vector<T>* kept) {
    events->reserve(count);
    kept->reserve(count);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t index = place[rows[i]];
        if (index == kNotPlaced) continue;
        events->push_back(first_event + index);
        kept->push_back(values[i]);
    }
}

}  // namespace trnscope
