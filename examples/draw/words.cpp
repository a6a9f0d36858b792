#include "words.hpp"
#include "folder.hpp"
#include "heap_file.hpp"
#include <charconv>
#include <cmath>

namespace draw {

using demo::failure;

namespace {

template <class T, class... How>
bool read(std::string_view word, T &value, How... how) {
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, how...);
    return error == std::errc() && end == word.data() + word.size();
}

bool is_space(char letter) {
    return letter == ' ' || letter == '\t' || letter == '\r';
}

} // namespace

std::vector<std::vector<std::string>> split_commands(std::string_view text) {
    std::vector<std::vector<std::string>> commands(1);
    for (size_t at = 0; at < text.size();) {
        char letter = text[at];
        if (letter == ';' || letter == '\n') {
            commands.emplace_back();
            ++at;
        } else if (is_space(letter)) {
            ++at;
        } else if (letter == '#' && commands.back().empty()) {
            at = std::min(text.find('\n', at), text.size());
        } else if (letter == '"') {
            size_t end = text.find('"', at + 1);
            if (end == std::string_view::npos)
                throw failure("a quotation mark is not closed");
            commands.back().emplace_back(text.substr(at + 1, end - at - 1));
            at = end + 1;
        } else {
            size_t end = at;
            while (end < text.size() && !is_space(text[end]) && text[end] != ';' && text[end] != '\n')
                ++end;
            commands.back().emplace_back(text.substr(at, end - at));
            at = end;
        }
    }
    std::erase_if(commands, [](const auto &words) { return words.empty(); });
    return commands;
}

double number_of(const std::string &word) {
    double value = 0;
    if (!read(word, value) || !std::isfinite(value))
        throw failure("\"" + word + "\" is not a number");
    return value;
}

uint64_t count_of(const std::string &word) {
    uint64_t value = 0;
    if (!read(word, value))
        throw failure("\"" + word + "\" is not a whole number");
    return value;
}

uint32_t colour_of(const std::string &word) {
    uint32_t value = 0;
    if (word.size() != 7 || word[0] != '#' || !read(std::string_view(word).substr(1), value, 16))
        throw failure("\"" + word + "\" is not a colour: it is written #rrggbb, as #ff0000 for red");
    return value;
}

std::string counted(uint64_t number, const char *one, const char *many) {
    return demo::with_commas(number) + " " + (number == 1 ? one : many);
}

} // namespace draw
