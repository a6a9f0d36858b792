// Writes a set as a text (text.hpp).
#include "text.hpp"

#include <cstdio>

namespace taiyen::pack {

namespace {

void put_name(std::string &text, std::string_view name) {
    text += '"';
    for (char byte : name) {
        auto value = static_cast<unsigned char>(byte);
        if (byte == '"' || byte == '\\') {
            text += '\\';
            text += byte;
        } else if (value < 0x20 || value >= 0x7f) { // a line stays one line, and the text is UTF-8 whatever the name is
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\x%02x", value);
            text += escaped;
        } else {
            text += byte;
        }
    }
    text += '"';
}

void put_count(std::string &text, const char *word, const ty_count &count) {
    if (count.kind == TY_COUNT_FIXED && count.number <= 1)
        return;
    text += word;
    if (count.kind == TY_COUNT_FIXED) {
        text += std::to_string(count.number);
    } else if (count.kind == TY_COUNT_FIELD) {
        text += "field " + std::to_string(count.offset) + ' ' + std::to_string(count.bytes);
        if (count.number > 1)
            text += " times " + std::to_string(count.number);
    } else if (count.kind == TY_COUNT_END) {
        text += "end " + std::to_string(count.offset);
    } else {
        text += "block";
    }
}

void put_to(std::string &text, const ty_type *descriptor) {
    if (descriptor)
        put_name(text, descriptor->name);
    else
        text += '-';
}

void put_field(std::string &text, const ty_field &field) {
    text += "  field " + std::to_string(field.offset) + ' ';
    put_name(text, field.name);
    if (field.kind == TY_FIELD_PLACE) {
        text += " place " + std::to_string(field.base_offset) + '\n';
        return;
    }
    if (field.kind == TY_FIELD_HEAP || field.kind == TY_FIELD_PLAIN) {
        text += field.kind == TY_FIELD_HEAP ? " heap" : " plain";
        put_count(text, " here ", field.here);
        text += '\n';
        return;
    }
    text += field.kind == TY_FIELD_POINTER ? " pointer " : field.kind == TY_FIELD_REFERENCE ? " reference" : " nested ";
    if (field.kind != TY_FIELD_REFERENCE)
        put_to(text, field.descriptor);
    put_count(text, " here ", field.here);
    if (field.kind == TY_FIELD_POINTER)
        put_count(text, " there ", field.there);
    if (field.kind != TY_FIELD_NESTED && field.tag_mask != 0) {
        char mask[32];
        std::snprintf(mask, sizeof mask, " tag 0x%llx", static_cast<unsigned long long>(field.tag_mask));
        text += mask;
    }
    text += '\n';
}

} // namespace

// SH3: read_text() gives the same set.
std::string write_text(const descriptor_set &set) {
    std::string text = "taiyen types 1\n";
    for (const ty_type *descriptor : set.descriptors()) {
        text += "type ";
        put_name(text, descriptor->name);
        text += ' ' + std::to_string(descriptor->size_bytes) + '\n';
        for (size_t n = 0; n < descriptor->field_count; ++n)
            put_field(text, descriptor->fields[n]);
        const owned_descriptor *owned = set.owned(descriptor);
        if (descriptor->trace || (owned && owned->needs_trace))
            text += "  trace\n";
        if (descriptor->moved || (owned && owned->needs_moved))
            text += "  moved\n";
    }
    for (const set_root &root : set.roots()) {
        text += "root ";
        put_name(text, root.name);
        text += ' ';
        put_to(text, root.descriptor);
        put_count(text, " there ", root.count);
        text += '\n';
    }
    return text;
}

} // namespace taiyen::pack
