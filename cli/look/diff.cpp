// taiyen diff: the differences between two heaps; for one heap, diff_since.cpp shows what has changed since its
// snapshot.
#include "common/numbers.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "look/diff_since.hpp"
#include "look/heap_content.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

struct block_change {
    char sign; // + only in the second, - only in the first, ~ in both
    uint64_t offset;
    uint64_t old_bytes;
    uint64_t size_bytes;
};
struct root_change {
    char sign;
    std::string name;
    uint64_t old_offset;
    uint64_t offset;
};
struct differences {
    std::vector<root_change> roots;
    uint64_t count[128] = {}; // of blocks, by sign
    uint64_t bytes[128] = {};
    std::vector<block_change> shown; // the first ones
    uint64_t changed_pages = 0;
    uint64_t lone_pages = 0; // in use in one of the two
    uint64_t same_pages = 0;

    uint64_t blocks() const { return count['+'] + count['-'] + count['~']; }
    bool any() const { return !roots.empty() || blocks() != 0; }
};

// Calls back with each pair of equal keys, or with an item that only one side has and NULL.
template <class Item, class Key, class Callback>
void merge(const std::vector<Item> &a, const std::vector<Item> &b, Key key, Callback callback) {
    auto one = a.begin();
    auto other = b.begin();
    while (one != a.end() || other != b.end()) {
        const bool first = other == b.end() || (one != a.end() && key(*one) <= key(*other));
        const bool second = one == a.end() || (other != b.end() && key(*other) <= key(*one));
        callback(first ? &*one : nullptr, second ? &*other : nullptr);
        one += first;
        other += second;
    }
}

void compare_blocks(const heap_content &a, const heap_content &b, size_t shown_max, differences &found) {
    merge(
        a.blocks, b.blocks, [](const block_content &one) { return one.offset; },
        [&](const block_content *one, const block_content *other) {
            if (one != nullptr && other != nullptr && one->size_bytes == other->size_bytes && one->hash == other->hash)
                return;
            const char sign = one == nullptr ? '+' : other == nullptr ? '-' : '~';
            const block_content &at = other != nullptr ? *other : *one;
            ++found.count[+sign];
            found.bytes[+sign] += at.size_bytes;
            if (found.shown.size() < shown_max)
                found.shown.push_back(
                    {sign, at.offset, one != nullptr ? one->size_bytes : 0, other != nullptr ? at.size_bytes : 0});
        });
}

void compare_pages(const heap_content &a, const heap_content &b, differences &found) {
    merge(
        a.pages, b.pages, [](const page_content &one) { return one.number; },
        [&](const page_content *one, const page_content *other) {
            if (one == nullptr || other == nullptr)
                ++found.lone_pages;
            else
                ++(one->hash == other->hash ? found.same_pages : found.changed_pages);
        });
}

void compare_roots(const heap_content &a, const heap_content &b, differences &found) {
    for (const auto &[name, offset] : a.roots)
        if (const auto other = b.roots.find(name); other == b.roots.end())
            found.roots.push_back({'-', name, offset, 0});
        else if (other->second != offset)
            found.roots.push_back({'~', name, offset, other->second});
    for (const auto &[name, offset] : b.roots)
        if (!a.roots.contains(name))
            found.roots.push_back({'+', name, 0, offset});
}

// ---- JSON

json::document roots_document(const heap_content &a, const heap_content &b, const differences &found) {
    json::document all = json::document::array();
    for (const root_change &root : found.roots) {
        json::document one{{"change", std::string(1, root.sign)}, {"name", root.name}};
        if (root.sign != '+')
            one["old_address"] = text::hex(a.base + root.old_offset);
        if (root.sign != '-')
            one["address"] = text::hex(b.base + root.offset);
        all.push_back(one);
    }
    return all;
}

json::document blocks_document(const heap_content &a, const heap_content &b, const differences &found) {
    json::document all = json::document::array();
    for (const block_change &block : found.shown) {
        json::document one{{"change", std::string(1, block.sign)},
                           {"address", text::hex((block.sign == '-' ? a.base : b.base) + block.offset)}};
        if (block.sign != '+')
            one["old_bytes"] = json::wide(block.old_bytes);
        if (block.sign != '-')
            one["size_bytes"] = json::wide(block.size_bytes);
        all.push_back(one);
    }
    return all;
}

void print_json(const request &given, const heap_content &a, const heap_content &b, const differences &found) {
    json::print({{"path", given.paths[0]},
                 {"other", given.paths[1]},
                 {"same", !found.any()},
                 {"kinds", {kind_name(a.kind), kind_name(b.kind)}},
                 {"bases", {text::hex(a.base), text::hex(b.base)}},
                 {"limits_bytes", {json::wide(a.limit_bytes), json::wide(b.limit_bytes)}},
                 {"roots", roots_document(a, b, found)},
                 {"new_blocks", json::wide(found.count['+'])},
                 {"new_bytes", json::wide(found.bytes['+'])},
                 {"gone_blocks", json::wide(found.count['-'])},
                 {"gone_bytes", json::wide(found.bytes['-'])},
                 {"changed_blocks", json::wide(found.count['~'])},
                 {"changed_bytes", json::wide(found.bytes['~'])},
                 {"blocks", blocks_document(a, b, found)},
                 {"changed_pages", json::wide(found.changed_pages)},
                 {"lone_pages", json::wide(found.lone_pages)},
                 {"same_pages", json::wide(found.same_pages)},
                 {"old_classes_in_use", json::classes(a.classes)},
                 {"classes_in_use", json::classes(b.classes)}});
}

// ---- for people

std::string signed_line(char sign, const std::string &text) {
    return in(sign == '+' ? ink::good : sign == '-' ? ink::bad : ink::strong, std::string(1, sign) + " " + text);
}

void print_heads(const heap_content &a, const heap_content &b) {
    if (a.kind != b.kind)
        print_line("kind", std::string(kind_name(a.kind)) + ", then " + kind_name(b.kind));
    if (a.base != b.base)
        print_line("base",
                   text::hex(a.base) + ", then " + text::hex(b.base) + ": each block that holds an address differs");
    if (a.limit_bytes != b.limit_bytes)
        print_line("limit", text::size(a.limit_bytes) + ", then " + text::size(b.limit_bytes));
}

void print_roots(const heap_content &a, const heap_content &b, const differences &found) {
    for (const root_change &root : found.roots) {
        std::string line = text::printable(root.name) + "  ";
        if (root.sign != '+')
            line += text::hex(a.base + root.old_offset);
        if (root.sign == '~')
            line += " -> ";
        if (root.sign != '-')
            line += text::hex(b.base + root.offset);
        print_line("root", signed_line(root.sign, line));
    }
}

void print_class_changes(const heap_content &a, const heap_content &b) {
    merge(
        a.classes, b.classes,
        [](const ty_class_stats &one) { return one.block_bytes != 0 ? one.block_bytes : SIZE_MAX; },
        [](const ty_class_stats *one, const ty_class_stats *other) {
            const uint64_t before = one != nullptr ? one->live_blocks : 0;
            const uint64_t after = other != nullptr ? other->live_blocks : 0;
            const size_t bytes = (one != nullptr ? one : other)->block_bytes;
            if (before != after)
                print_line("class", (bytes != 0 ? text::counted(bytes, "byte") : "whole pages") + ": " +
                                        text::counted(before, "block") + ", then " + text::count(after));
        });
}

void print_blocks(const heap_content &a, const heap_content &b, const differences &found) {
    print_line("blocks", text::count(found.count['+']) + " new of " + text::size(found.bytes['+']) + ", " +
                             text::count(found.count['-']) + " gone of " + text::size(found.bytes['-']) + ", " +
                             text::count(found.count['~']) + " changed of " + text::size(found.bytes['~']));
    for (const block_change &block : found.shown) {
        std::string line = text::hex((block.sign == '-' ? a.base : b.base) + block.offset) + "  ";
        line += text::counted(block.sign == '-' ? block.old_bytes : block.size_bytes, "byte");
        if (block.sign == '~' && block.old_bytes != block.size_bytes)
            line += ", was " + text::count(block.old_bytes);
        print_line("", signed_line(block.sign, line));
    }
    if (found.shown.size() < found.blocks())
        print_line("", "and " + text::count(found.blocks() - found.shown.size()) + " more; --shown COUNT shows more");
}

void print_words(const request &given, const heap_content &a, const heap_content &b, const differences &found) {
    std::printf("%s and %s: %s\n", in(ink::strong, text::printable(given.paths[0])).c_str(),
                in(ink::strong, text::printable(given.paths[1])).c_str(),
                found.any() ? "they differ" : "the same roots and blocks, with the same content");
    print_heads(a, b);
    if (!found.any())
        return;
    print_roots(a, b, found);
    print_class_changes(a, b);
    print_blocks(a, b, found);
    print_line("pages", text::count(found.changed_pages) + " of " +
                            text::count(found.changed_pages + found.same_pages) +
                            " that both use differ; one of them alone uses " + text::count(found.lone_pages));
}

int diff_two(const request &given, size_t shown_max) {
    heap_content content[2];
    for (size_t i = 0; i < 2; ++i) {
        const heap_files files = files_at_mark(given, i);
        if (ty_status status = content[i].read(files, i == 0 ? "reading the first" : "reading the second")) {
            static_cast<void>(refuse(files, given, status));
            return exit_cannot; // 1 means that they differ
        }
    }
    differences found;
    compare_roots(content[0], content[1], found);
    compare_blocks(content[0], content[1], shown_max, found);
    compare_pages(content[0], content[1], found);
    if (given.json)
        print_json(given, content[0], content[1], found);
    else
        print_words(given, content[0], content[1], found);
    return found.any() ? exit_problems : exit_fine;
}

} // namespace

int diff(const request &given) {
    uint64_t shown_max = 20;
    if (!given.shown.empty() && !read_size(given.shown, &shown_max)) {
        refuse_value("shown", given.shown, "how many blocks to list, such as 100");
        return exit_cannot;
    }
    return given.paths.size() == 2 ? diff_two(given, shown_max) : diff_since(given, shown_max);
}

} // namespace cli
