#include "common/terminal.hpp"

#include "common/numbers.hpp"
#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace cli {

namespace {

constexpr int64_t columns_min = 40;
constexpr int64_t columns_max = 1000;

bool coloured() {
    const char *none = std::getenv("NO_COLOR"); // no-color.org: if it is set and not empty
    const char *terminal = std::getenv("TERM");
    return on_terminal() && (none == nullptr || *none == 0) && terminal != nullptr &&
           std::string_view(terminal) != "dumb";
}

const char *code_of(ink ink) {
    switch (ink) {
    case ink::strong:
        return "\033[1m";
    case ink::good:
        return "\033[32m";
    case ink::bad:
        return "\033[31m";
    case ink::quiet:
        return "\033[2m";
    }
    return "";
}

bool is_first_byte(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

} // namespace

bool on_terminal() {
    return isatty(STDOUT_FILENO) == 1;
}

unsigned columns() {
    int64_t asked = 0;
    const char *variable = std::getenv("COLUMNS");
    if (variable != nullptr && read_whole(variable, columns_min, columns_max, &asked))
        return static_cast<unsigned>(asked);
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= columns_min)
        return size.ws_col;
    return 80;
}

std::string in(ink ink, const std::string &text) {
    return coloured() ? code_of(ink) + text + "\033[0m" : text;
}

std::string cut(const std::string &text, size_t characters) {
    size_t count = 0, keep = 0;
    for (size_t at = 0; at < text.size(); ++at) {
        if (!is_first_byte(text[at]))
            continue;
        if (count + 3 == characters)
            keep = at;
        if (count++ == characters)
            return text.substr(0, keep) + "...";
    }
    return text;
}

} // namespace cli
