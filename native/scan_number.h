// Decimal text to exact integers, nanoseconds and doubles.
//
// All texts must be readable for 16 bytes beyond their end.
#pragma once

#include <cstdint>
#include <string_view>

namespace trnscope {

// First byte after the number at p, or nullptr with *stop at the byte that breaks it. Beyond JSON
// it takes a leading plus, leading zeros and a point without digits on one side.
const char* scan_number(const char* p, const char** stop);

// Decimal microseconds as nanoseconds, halves rounded away from zero; false if the text is no
// number or does not fit. Blanks around the number are ignored.
bool to_ns(std::string_view text, int64_t* ns);

// A whole number, decimal (also 5.0 or 1e3) or 0x hexadecimal, in the range of int64 or uint64.
// `bits` is its two's complement.
bool to_integer(std::string_view text, uint64_t* bits, bool* negative);

// False where the value is not finite. `text` is what scan_number accepts.
bool to_double(std::string_view text, double* value);

}  // namespace trnscope
