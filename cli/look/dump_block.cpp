#include "look/dump_block.hpp"

#include "common/terminal.hpp"
#include "common/text.hpp"
#include "look/reading.hpp"
#include "types/descriptors_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

constexpr size_t word_bytes = 8;
constexpr size_t shown_bytes_max = 4096; // as text; JSON has all bytes

// Where a word of the block leads.
struct lead {
    uint64_t value = 0;
    ty_block block{};   // size 0: to no block
    std::string object; // of the code that it leads to; empty: to none
    uint64_t object_offset = 0;
};

struct block_view {
    ty_heap *heap = nullptr;
    ty_block block{};
    size_t shown_bytes = SIZE_MAX; // of the block, at most, and of what its words lead to
    ty_extent extent{};            // `live` is not valid
    bool own = false;
    std::vector<named_root> roots; // those that lead into it
    described_descriptors descriptors;
    const ty_type *descriptor = nullptr; // of its first object, if a root leads there
    std::map<size_t, lead> leads;        // by offset

    const char *bytes() const { return static_cast<const char *>(block.address); }
    size_t offset_of(const void *address) const {
        return static_cast<size_t>(static_cast<const char *>(address) - bytes());
    }
    size_t shown() const { return std::min(block.size_bytes, shown_bytes); }
    bool contains(const void *address) const {
        return address >= block.address && address < bytes() + block.size_bytes;
    }
    size_t index() const {
        const auto distance = static_cast<size_t>(bytes() - static_cast<const char *>(extent.address));
        return extent.kind == TY_EXTENT_SPAN ? distance / extent.block_size_bytes : 0;
    }
};

// ---- Finding it

struct extent_search {
    const char *address;
    ty_extent found;
};

bool find_extent(const ty_extent *extent, void *context) {
    auto &search = *static_cast<extent_search *>(context);
    const auto *first = static_cast<const char *>(extent->address);
    if (search.address >= first + extent->size_bytes)
        return true;
    if (search.address >= first)
        search.found = *extent;
    return false;
}

const char *remedy_at(const ty_extent &extent) {
    if (extent.address == nullptr)
        return "the address is not in the heap; 'taiyen dump' lists its blocks";
    switch (extent.kind) {
    case TY_EXTENT_SPAN:
        return "a free block is there; 'taiyen dump' lists the live ones";
    case TY_EXTENT_CONTROL:
        return "the heap's own tables are there; 'taiyen dump' lists the blocks";
    default:
        return "free pages are there; 'taiyen dump' lists the blocks";
    }
}

ty_status find_block(block_view &view, const char *path, uint64_t address) {
    extent_search search{reinterpret_cast<const char *>(address), {}};
    if (ty_status status = ty_each_extent(view.heap, find_extent, &search))
        return status;
    view.extent = search.found;
    const bool in_heap = search.found.address != nullptr;
    if (!in_heap || ty_block_of(search.address, &view.block) != TY_OK)
        return ty_error_set(TY_E_NOT_FOUND, 0, ("find a live block at " + text::hex(address)).c_str(), path, UINT64_MAX,
                            remedy_at(search.found));
    return TY_OK;
}

// ---- What is known of it

ty_status find_roots(block_view &view) {
    std::vector<named_root> all;
    if (ty_status status = roots_of(view.heap, all))
        return status;
    const bool described = view.descriptors.load(view.heap) == TY_OK;
    for (const named_root &root : all) {
        if (!view.contains(root.address))
            continue;
        view.roots.push_back(root);
        const ty_type *descriptor = nullptr;
        if (described && root.address == view.block.address &&
            ty_types_find_root(view.descriptors.get(), root.name.c_str(), &descriptor, nullptr) == TY_OK)
            view.descriptor = descriptor;
    }
    return TY_OK;
}

bool note_code(const ty_code_word *word, void *context) {
    auto &view = *static_cast<block_view *>(context);
    if (!view.contains(word->address) || view.offset_of(word->address) >= view.shown())
        return word->address < view.block.address; // words come in order
    lead &one = view.leads[view.offset_of(word->address)];
    one.value = word->value;
    one.object = word->object;
    one.object_offset = word->offset;
    return true;
}

bool note_internal(const ty_block *block, void *context) {
    auto &view = *static_cast<block_view *>(context);
    view.own = view.own || block->address == view.block.address;
    return !view.own;
}

void find_blocks_it_leads_to(block_view &view) {
    for (size_t at = 0; at + word_bytes <= view.shown(); at += word_bytes) {
        uint64_t value = 0;
        std::memcpy(&value, view.bytes() + at, word_bytes);
        const auto *address = reinterpret_cast<const void *>(value);
        lead one{value, {}, "", 0};
        if (value != 0 && ty_heap_of(address) == view.heap && ty_block_of(address, &one.block) == TY_OK)
            view.leads[at] = one;
    }
}

ty_status look_at(block_view &view) {
    if (ty_status status = find_roots(view))
        return status;
    if (ty_status status = ty_each_internal_block(view.heap, note_internal, &view))
        return status;
    find_blocks_it_leads_to(view);
    return ty_each_code_word(view.heap, note_code, &view);
}

// ---- Its fields

const char *field_kind_name(ty_field_kind kind) {
    switch (kind) {
    case TY_FIELD_POINTER:
        return "pointer";
    case TY_FIELD_REFERENCE:
        return "reference";
    case TY_FIELD_PLACE:
        return "place";
    case TY_FIELD_NESTED:
        return "nested";
    case TY_FIELD_HEAP:
        return "heap";
    case TY_FIELD_PLAIN:
        return "plain";
    }
    return "unknown";
}

const ty_field *field_at(const ty_type *descriptor, size_t offset) {
    for (size_t i = 0; descriptor != nullptr && i < descriptor->field_count; ++i)
        if (descriptor->fields[i].offset == offset)
            return &descriptor->fields[i];
    return nullptr;
}

// ---- JSON

json::document fields_document(const ty_type &descriptor) {
    json::document all = json::document::array();
    for (size_t i = 0; i < descriptor.field_count; ++i) {
        const ty_field &field = descriptor.fields[i];
        json::document one{
            {"name", field.name}, {"offset", json::wide(field.offset)}, {"kind", field_kind_name(field.kind)}};
        if (field.descriptor != nullptr)
            one["type"] = field.descriptor->name;
        all.push_back(one);
    }
    return all;
}

json::document leads_document(const block_view &view) {
    json::document all = json::document::array();
    for (const auto &[offset, lead] : view.leads) {
        json::document one{{"offset", json::wide(offset)}, {"value", text::hex(lead.value)}};
        if (lead.block.size_bytes != 0) {
            one["block"] = text::hex(lead.block.address);
            one["block_bytes"] = json::wide(lead.block.size_bytes);
        } else {
            one["object"] = lead.object;
            one["object_offset"] = json::wide(lead.object_offset);
        }
        all.push_back(one);
    }
    return all;
}

json::document block_document(const heap_files &files, const block_view &view) {
    json::document one{{"path", files.path},
                       {"address", text::hex(view.block.address)},
                       {"size_bytes", json::wide(view.block.size_bytes)},
                       {"extent", text::hex(view.extent.address)},
                       {"extent_bytes", json::wide(view.extent.size_bytes)},
                       {"index", json::wide(view.index())},
                       {"internal", view.own},
                       {"roots", json::document::array()}};
    for (const named_root &root : view.roots)
        one["roots"].push_back(cli::document_of(root));
    if (view.descriptor != nullptr) {
        one["type"] = view.descriptor->name;
        one["type_bytes"] = json::wide(view.descriptor->size_bytes);
        one["fields"] = fields_document(*view.descriptor);
    }
    one["words"] = leads_document(view);
    one["bytes"] = text::hex_bytes(std::string(view.bytes(), view.shown()));
    return one;
}

// ---- for people

void print_place(const heap_files &files, const block_view &view) {
    std::printf("%s: the block at %s has %s", in(ink::strong, text::printable(files.path)).c_str(),
                text::hex(view.block.address).c_str(), text::counted(view.block.size_bytes, "byte").c_str());
    if (view.extent.kind == TY_EXTENT_SPAN)
        std::printf(", number %zu of %zu in the span at %s\n", view.index(), view.extent.block_count,
                    text::hex(view.extent.address).c_str());
    else
        std::printf(", whole pages\n");
    if (view.own)
        print_line("internal", "it is one of the library's");
    for (const named_root &root : view.roots) {
        const size_t offset = view.offset_of(root.address);
        print_line("root", text::printable(root.name) + (offset != 0 ? " leads to +" + text::hex(offset) : "") +
                               (root.type.empty() ? "" : ": " + text::printable(root.type)));
    }
    if (view.descriptor == nullptr)
        return;
    print_line("type",
               text::printable(view.descriptor->name) + ", " + text::counted(view.descriptor->size_bytes, "byte"));
    for (size_t i = 0; i < view.descriptor->field_count; ++i) {
        const ty_field &field = view.descriptor->fields[i];
        print_line("", "+" + text::hex(field.offset) + " " + text::printable(field.name) + ": " +
                           field_kind_name(field.kind) +
                           (field.descriptor != nullptr ? " to " + text::printable(field.descriptor->name) : ""));
    }
}

void print_lead(const block_view &view, size_t offset, const lead &lead) {
    std::string line = "+" + text::hex(offset);
    if (const ty_field *field = field_at(view.descriptor, offset))
        line += " " + text::printable(field->name);
    line += " -> ";
    if (lead.block.size_bytes == 0) {
        line += "code: " + text::printable(lead.object) + " +" + text::hex(lead.object_offset);
    } else {
        const uint64_t into = lead.value - reinterpret_cast<uintptr_t>(lead.block.address);
        line += "the block at " + text::hex(lead.block.address) + " of " + text::counted(lead.block.size_bytes, "byte");
        line += into != 0 ? ", +" + text::hex(into) : "";
    }
    std::printf("%12s%s\n", "", in(ink::quiet, line).c_str());
}

void print_row(const block_view &view, size_t at, size_t row_bytes) {
    std::string hex, letters;
    for (size_t i = at; i < at + row_bytes; ++i) {
        if (i % word_bytes == 0)
            hex += " ";
        if (i >= view.block.size_bytes) {
            hex += "   ";
            continue;
        }
        const char byte = view.bytes()[i];
        hex += " " + text::hex_bytes(std::string(1, byte));
        letters += byte >= 0x20 && byte < 0x7f ? byte : '.';
    }
    std::printf("  %8s%s  |%s|\n", ("+" + text::hex(at)).c_str(), hex.c_str(), letters.c_str());
    for (auto one = view.leads.lower_bound(at); one != view.leads.end() && one->first < at + row_bytes; ++one)
        print_lead(view, one->first, one->second);
}

void print_words(const heap_files &files, const block_view &view) {
    print_place(files, view);
    const size_t row_bytes = columns() >= 80 ? 16 : 8;
    const size_t shown = std::min(view.block.size_bytes, shown_bytes_max);
    for (size_t at = 0; at < shown && std::ferror(stdout) == 0; at += row_bytes)
        print_row(view, at, row_bytes);
    if (shown < view.block.size_bytes)
        std::printf("  and %s more; --json has all\n", text::counted(view.block.size_bytes - shown, "byte").c_str());
}

} // namespace

ty_status dump_block(ty_heap *heap, const heap_files &files, const request &given, uint64_t address) {
    block_view view;
    view.heap = heap;
    if (ty_status status = find_block(view, files.path.c_str(), address))
        return status;
    if (ty_status status = look_at(view))
        return status;
    if (given.json)
        json::print(block_document(files, view));
    else
        print_words(files, view);
    return TY_OK;
}

ty_status block_document(ty_heap *heap, const heap_files &files, uint64_t address, size_t bytes_max,
                         json::document *one) {
    block_view view;
    view.heap = heap;
    view.shown_bytes = bytes_max;
    if (ty_status status = find_block(view, files.path.c_str(), address))
        return status;
    if (ty_status status = look_at(view))
        return status;
    *one = block_document(files, view);
    return TY_OK;
}

} // namespace cli
