#include "common/text.hpp"

#include <array>
#include <cstdio>

namespace text {

std::string size(uint64_t bytes) {
    static constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024)
        return counted(bytes, "byte");
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
    snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

std::string count(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t i = digits.size(); i > 3; i -= 3)
        digits.insert(i - 3, ",");
    return digits;
}

std::string percent(double share) {
    char text[32];
    snprintf(text, sizeof text, "%.1f %%", share * 100);
    return text;
}

std::string with_article(const std::string &noun) {
    return (noun.find_first_of("aeiou") == 0 ? "an " : "a ") + noun;
}

std::string hex(uint64_t address) {
    char text[32];
    snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

std::string hex(const void *address) {
    return hex(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address)));
}

namespace {

// The bytes of a character at that place that controls a terminal, or changes a line's direction: U+0080 to U+009F,
// U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069. 0: it is not one of them.
size_t controls_at(const std::string &text, size_t at) {
    const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
    if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f)
        return 2;
    const unsigned third = byte(2);
    const bool turns = (byte(1) == 0x80 && (third == 0x8e || third == 0x8f || (third >= 0xaa && third <= 0xae))) ||
                       (byte(1) == 0x81 && third >= 0xa6 && third <= 0xa9);
    return byte(0) == 0xe2 && turns ? 3 : 0;
}

} // namespace

// CL5: no control character of a name gets to a terminal.
std::string printable(const std::string &name) {
    std::string line;
    size_t hidden = 0; // remaining bytes of a character that is escaped
    for (size_t i = 0; i < name.size(); ++i) {
        const auto code = static_cast<unsigned char>(name[i]);
        char escaped[5];
        snprintf(escaped, sizeof escaped, "\\x%02x", code);
        if (hidden == 0)
            hidden = controls_at(name, i);
        if (hidden > 0 || code < 0x20 || code == 0x7f)
            line += escaped;
        else
            line += code == '\\' ? "\\\\" : std::string(1, name[i]);
        hidden -= hidden > 0;
    }
    return line;
}

namespace {

// The bytes of the character at that place; 0: it is not a valid one.
size_t character_bytes(const std::string &text, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    if (bytes == 1)
        return 1;
    if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() - at < bytes)
        return 0;
    for (size_t i = 1; i < bytes; ++i)
        if (byte(i) >> 6 != 2)
            return 0;
    const unsigned first = byte(0), second = byte(1);
    const bool other_form = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90); // overlong
    const bool no_character = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
    return other_form || no_character ? 0 : bytes;
}

} // namespace

std::string utf8(const std::string &name) {
    std::string all;
    for (size_t at = 0; at < name.size();) {
        const size_t bytes = character_bytes(name, at);
        all += bytes ? name.substr(at, bytes) : "\xef\xbf\xbd";
        at += bytes ? bytes : 1;
    }
    return all;
}

std::string hex_bytes(const std::string &bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string line;
    for (const char one : bytes) {
        const auto byte = static_cast<unsigned char>(one);
        line += digits[byte >> 4];
        line += digits[byte & 15];
    }
    return line;
}

std::string counted(uint64_t number, const char *thing) {
    std::string text = count(number) + " " + thing;
    if (number == 1)
        return text;
    const std::string end = text.substr(text.size() - 2);
    return text + (end == "ch" ? "es" : "s");
}

} // namespace text
