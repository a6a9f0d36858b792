#include "common/numbers.hpp"

#include "common/text.hpp"
#include <charconv>
#include <cstdio>

namespace cli {

namespace {

// Parses the whole text from `at` on.
template <class Number>
bool read_all(const std::string &text, size_t at, size_t end, int base, Number *number) {
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, *number, base);
    return error == std::errc() && stop == text.data() + end;
}

} // namespace

bool read_size(const std::string &text, uint64_t *number) {
    static const std::string units = "KMGT";
    size_t digits = text.size();
    unsigned shift = 0;
    if (!text.empty() && units.find(text.back()) != std::string::npos) {
        shift = 10 * static_cast<unsigned>(units.find(text.back()) + 1);
        digits--;
    }
    if (!read_all(text, 0, digits, 10, number) || *number > UINT64_MAX >> shift)
        return false;
    *number <<= shift;
    return true;
}

bool read_whole(const std::string &text, int64_t least, int64_t most, int64_t *number) {
    return read_all(text, 0, text.size(), 10, number) && *number >= least && *number <= most;
}

bool read_address(const std::string &text, uint64_t *address) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    return read_all(text, hex ? 2 : 0, text.size(), hex ? 16 : 10, address);
}

bool refuse_value(const char *option, const std::string &value, const char *wanted) {
    std::fprintf(stderr, "taiyen: the option '--%s' cannot be '%s': give %s\n", option, text::printable(value).c_str(),
                 wanted);
    return false;
}

} // namespace cli
