// Where an event plausibly begins in the middle of a text.
#pragma once

#include "scan_value.h"

namespace trnscope {

// Whitespace inside of a boundary is looked through this far.
constexpr size_t kMaxBoundarySpace = 4096;

enum class Boundary : uint8_t { kYes, kNo, kCutOff };

// Whether the brace at p opens an object whose first key is one of an event's.
// `is_ph` tells whether that key is "ph", which members of args never have.
Boundary begins_event(const char* p, const char* end, bool* is_ph);

// The brace of the first event in [p, end) that follows another: `}`, a comma, `{` and an event's
// key, nullptr if there is none. Text between quotes cannot look like that in valid JSON, but in
// damaged JSON it may, and objects in an event's args can; so this is a guess to be confirmed.
const char* find_next_event(const char* p, const char* end);

// Last byte before p that is not whitespace, or '\0' at `begin` or after too much whitespace.
char previous_character(const char* begin, const char* p);

}  // namespace trnscope
