#include "text_search.h"

#include <array>
#include <string_view>

namespace trnscope {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool begins_with(std::string_view text, const std::string& word) {
    if (text.size() < word.size()) return false;
    for (size_t i = 0; i < word.size(); ++i) {
        if (lower(text[i]) != word[i]) return false;
    }
    return true;
}

class WordSearch {
  public:
    explicit WordSearch(const std::vector<std::string>& words) : words_(words) {
        for (const std::string& word : words) {
            const char first = word.front();
            begins_[static_cast<unsigned char>(first)] = true;
            if (first >= 'a' && first <= 'z')
                begins_[static_cast<unsigned char>(first - 32)] = true;
        }
    }

    bool is_in(std::string_view text) const {
        for (size_t at = 0; at < text.size(); ++at) {
            if (!begins_[static_cast<unsigned char>(text[at])]) continue;
            for (const std::string& word : words_) {
                if (begins_with(text.substr(at), word)) return true;
            }
        }
        return false;
    }

  private:
    const std::vector<std::string>& words_;
    std::array<bool, 256> begins_{};
};

}  // namespace

std::vector<uint8_t> texts_with(const int64_t* ends, const uint8_t* wanted, size_t num_texts,
                                const char* bytes, const std::vector<std::string>& words) {
    const WordSearch search(words);
    std::vector<uint8_t> found(num_texts, 0);
    int64_t begin = 0;
    for (size_t i = 0; i < num_texts; ++i) {
        const std::string_view text(bytes + begin, static_cast<size_t>(ends[i] - begin));
        found[i] = wanted[i] != 0 && search.is_in(text);
        begin = ends[i];
    }
    return found;
}

}  // namespace trnscope
