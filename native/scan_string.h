// JSON strings: where they end, what is wrong with them, and their decoded text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scan_damage.h"
#include "scan_simd.h"

namespace trnscope {

enum StringNote : uint8_t {
    kNoteEscaped = 1,      // has backslashes
    kNoteBadEscape = 2,    // has backslashes that begin no escape
    kNoteInvalidUtf8 = 4,  // has bytes that are not UTF-8
    kNoteNonAscii = 8,     // has bytes that are not ASCII
};

// Position of the quote that ends the string whose content goes on from p; nullptr if it does not
// end before `end`. Sets bits of StringNote.
const char* string_end(const char* p, const char* end, uint8_t* notes, EventDamage* damage);

// Decodes escapes and replaces what is not UTF-8, and halves of surrogate pairs, by U+FFFD. A
// backslash that begins no escape stays. `content` must be the whole of a string.
void decode_string(std::string_view content, std::string* out);

// Replaces what is not UTF-8 by U+FFFD.
void sanitize_utf8(std::string_view text, std::string* out);

// Position of the first backslash that begins no escape, or npos.
size_t find_bad_escape(std::string_view content);

// 64-bit FNV-1a: the same for the same text in every run.
uint64_t stable_hash(std::string_view text);

}  // namespace trnscope
