#include "text_line.hpp"

#include <algorithm>
#include <charconv>

namespace taiyen::pack {

namespace {

bool is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r';
}

// A hexadecimal digit's value, or -1.
int digit(char byte) {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : -1;
}

} // namespace

void text_line::skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front()))
        rest_.remove_prefix(1);
    if (!rest_.empty() && rest_.front() == '#')
        rest_ = {};
}

std::string_view text_line::word() const {
    size_t length = 0;
    while (length < rest_.size() && !is_blank(rest_[length]) && rest_[length] != '#' && rest_[length] != '"')
        ++length;
    return rest_.substr(0, length);
}

bool text_line::take(std::string_view wanted) {
    if (word() != wanted)
        return false;
    rest_.remove_prefix(wanted.size());
    skip_blanks();
    return true;
}

bool text_line::take_number(uint64_t &number) {
    std::string_view digits = word();
    size_t length = digits.size();
    int base = 10;
    if (digits.starts_with("0x")) {
        digits.remove_prefix(2);
        base = 16;
    }
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
        return false;
    rest_.remove_prefix(length);
    skip_blanks();
    return true;
}

bool text_line::take_name(std::string &name) {
    if (rest_.empty() || rest_.front() != '"')
        return false;
    name.clear();
    for (size_t n = 1; n < rest_.size(); ++n) {
        char byte = rest_[n];
        if (byte == '"') {
            rest_.remove_prefix(n + 1);
            skip_blanks();
            return true;
        }
        if (byte == '\\') {
            char next = n + 1 < rest_.size() ? rest_[n + 1] : '\0';
            if (next == '"' || next == '\\') {
                byte = next;
                n += 1;
            } else if (next == 'x' && n + 3 < rest_.size() && digit(rest_[n + 2]) >= 0 && digit(rest_[n + 3]) >= 0) {
                byte = static_cast<char>(digit(rest_[n + 2]) * 16 + digit(rest_[n + 3]));
                n += 3;
            } else {
                return false;
            }
        }
        if (byte == '\0') // names are C strings
            return false;
        name.push_back(byte);
    }
    return false;
}

} // namespace taiyen::pack
