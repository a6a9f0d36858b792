// Type descriptors as a text that ty_types_read reads (docs/reference.md, "Type descriptors in a text").
#include "common/text.hpp"
#include "types/dwarf_descriptors.hpp"

#include <cstdio>

namespace cli::dwarf {

namespace {

// The bytes of the character at that place; 0: it is not valid UTF-8.
size_t character_bytes(const std::string &text, size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t bytes = first < 0x80   ? 1
                         : first < 0xc2 ? 0
                         : first < 0xe0 ? 2
                         : first < 0xf0 ? 3
                         : first < 0xf5 ? 4
                                        : 0;
    for (size_t n = 1; n < bytes; ++n)
        if (at + n >= text.size() || (static_cast<unsigned char>(text[at + n]) & 0xc0) != 0x80)
            return 0;
    return bytes;
}

std::string escaped(const std::string &text, bool quotes) {
    std::string line;
    for (size_t at = 0; at < text.size();) {
        const size_t bytes = character_bytes(text, at);
        const auto code = static_cast<unsigned char>(text[at]);
        char number[5];
        std::snprintf(number, sizeof number, "\\x%02x", code);
        if (bytes == 0 || code < 0x20 || code == 0x7f)
            line += number;
        else if (quotes && (code == '"' || code == '\\'))
            line += std::string("\\") + text[at];
        else
            line += text.substr(at, bytes);
        at += bytes == 0 ? 1 : bytes;
    }
    return line;
}

std::string to_text(const std::string &descriptor) {
    return descriptor.empty() ? "-" : quoted_name(descriptor);
}

std::string line_of(const field &one) {
    std::string line = "  field " + std::to_string(one.offset) + " " + quoted_name(one.name);
    switch (one.kind) {
    case field_kind::pointer:
        line += " pointer " + to_text(one.to);
        break;
    case field_kind::reference:
        line += " reference";
        break;
    case field_kind::place:
        return line + " place " + std::to_string(one.base) + "\n";
    case field_kind::nested:
        line += " nested " + quoted_name(one.to);
        break;
    }
    if (!one.here.empty())
        line += " here " + one.here;
    if (one.kind == field_kind::pointer && !one.there.empty())
        line += " there " + one.there;
    if (one.tag != 0)
        line += " tag " + text::hex(one.tag);
    return line + "\n";
}

std::string line_of(const note &one) {
    return std::string("  # ") + (one.open ? "! " : "") + escaped(one.text, false) + "\n";
}

// Notes come before the fields that they are about.
std::string text_of(const descriptor &one) {
    std::string text = "\ntype " + quoted_name(one.name) + " " + std::to_string(one.size);
    text += one.source.empty() ? "\n" : " # " + escaped(one.source, false) + "\n";
    auto next_note = one.notes.begin();
    for (const field &each : one.fields) {
        for (; next_note != one.notes.end() && next_note->offset <= each.offset; ++next_note)
            text += line_of(*next_note);
        text += line_of(each);
    }
    for (; next_note != one.notes.end(); ++next_note)
        text += line_of(*next_note);
    return text + (one.trace ? "  trace\n" : "") + (one.moved ? "  moved\n" : "");
}

} // namespace

std::string quoted_name(const std::string &name) {
    return '"' + escaped(name, true) + '"';
}

std::string text_of(const descriptor_maker &made, const std::vector<std::string> &roots, const std::string &from) {
    std::string text = "taiyen types 1\n# Written by taiyen types, of " + escaped(from, false) + ".\n";
    if (made.open_notes() != 0)
        text += "# Not complete: what is left to do stands after '# !'.\n";
    for (const auto &[name, one] : made.descriptors())
        text += text_of(one);
    text += "\n";
    for (const std::string &root : roots)
        text += root;
    return text;
}

} // namespace cli::dwarf
