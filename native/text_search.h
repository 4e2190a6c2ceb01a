// Which of many texts hold one of a few words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trnscope {

// Flags, one a text: whether it holds a word, ASCII letters in either case. `ends[i]` is where
// text i ends in `bytes`; words are lower case and not empty; texts whose `wanted` is 0 are
// passed over.
std::vector<uint8_t> texts_with(const int64_t* ends, const uint8_t* wanted, size_t num_texts,
                                const char* bytes, const std::vector<std::string>& words);

}  // namespace trnscope
