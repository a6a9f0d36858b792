#include "look/reading.hpp"

#include "common/terminal.hpp"
#include "common/text.hpp"
#include "types/descriptors_file.hpp"
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

read_heap::~read_heap() {
    if (heap_ != nullptr && close() != TY_OK)
        static_cast<void>(ty_discard(heap_));
}

// CL1: a follower takes neither time nor space of a heap that is in use. What cannot be followed is read as a copy.
ty_status read_heap::open(const heap_files &files, ty_report *report) {
    ty_open_options options = files.options();
    if (options.mode == TY_OPEN_COPY && options.mark == nullptr) {
        options.mode = TY_OPEN_READ_ONLY;
        ty_status status = ty_open(files.path.c_str(), &options, &heap_, report);
        if (status != TY_E_BUSY)
            return status;
        options.mode = TY_OPEN_FOLLOW;
        follows_ = ty_open(files.path.c_str(), &options, &heap_, report) == TY_OK;
        if (follows_)
            return ty_read_begin(heap_);
        options.mode = TY_OPEN_COPY;
    }
    return ty_open(files.path.c_str(), &options, &heap_, report);
}

ty_status read_heap::close() {
    // TY_E_EXPIRED: this process was stopped, and what it has said may be a mixture.
    const ty_status read = follows_ ? ty_read_end(heap_) : TY_OK;
    follows_ = false;
    if (read)
        return read;
    ty_status status = ty_close(heap_);
    if (status == TY_OK)
        heap_ = nullptr;
    return status;
}

namespace {

std::string type_of(const ty_types *descriptors, const std::string &root) {
    const ty_type *descriptor = nullptr;
    ty_count count{};
    if (descriptors == nullptr || ty_types_find_root(descriptors, root.c_str(), &descriptor, &count) != TY_OK)
        return "";
    const std::string name = descriptor != nullptr ? descriptor->name : "bytes";
    if (count.kind == TY_COUNT_BLOCK)
        return name + "[]";
    return count.number > 1 ? name + "[" + std::to_string(count.number) + "]" : name;
}

} // namespace

ty_status roots_of(ty_heap *heap, std::vector<named_root> &roots) {
    described_descriptors kept;
    const bool described = kept.load(heap) == TY_OK;
    auto keep = [](const char *name, void *address, void *all) {
        static_cast<std::vector<named_root> *>(all)->push_back({name, address, {}, ""});
        return true;
    };
    if (ty_status status = ty_each_root(heap, keep, &roots))
        return status;
    for (named_root &one : roots) {
        if (ty_block_of(one.address, &one.block) != TY_OK)
            one.block = {};
        one.type = type_of(described ? kept.get() : nullptr, one.name);
    }
    std::sort(roots.begin(), roots.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
    return TY_OK;
}

ty_status internal_blocks_of(ty_heap *heap, internal_blocks &own) {
    auto add = [](const ty_block *block, void *context) {
        auto &sum = *static_cast<internal_blocks *>(context);
        ++sum.count;
        sum.bytes += block->size_bytes;
        return true;
    };
    return ty_each_internal_block(heap, add, &own);
}

ty_status heap_metrics::read(ty_heap *heap) {
    stats.struct_size = sizeof stats;
    if (ty_status status = ty_heap_get_stats(heap, &stats))
        return status;
    ty_status status = TY_OK;
    classes = classes_of(heap, &status);
    if (status)
        return status;
    const ty_kind kind = ty_heap_kind(heap);
    return kind == TY_SNAPSHOT || kind == TY_TRANSACTIONAL ? ty_dirty_count(heap, &waiting_pages) : TY_OK;
}

double heap_metrics::page_efficiency() const {
    return stats.used_bytes != 0 ? static_cast<double>(stats.live_bytes) / static_cast<double>(stats.used_bytes) : 1;
}

void heap_metrics::add_to(json::document &one) const {
    one["base"] = text::hex(stats.base);
    one["limit_bytes"] = json::wide(stats.limit_bytes);
    one["touched_bytes"] = json::wide(stats.touched_bytes);
    one["live_blocks"] = json::wide(stats.live_blocks);
    one["live_bytes"] = json::wide(stats.live_bytes);
    one["used_bytes"] = json::wide(stats.used_bytes);
    one["control_bytes"] = json::wide(stats.control_bytes);
    one["free_extents"] = json::wide(stats.free_extents);
    one["free_bytes"] = json::wide(stats.free_bytes);
    one["largest_free_bytes"] = json::wide(stats.largest_free_bytes);
    one["availability"] = stats.availability;
    one["page_efficiency"] = page_efficiency();
    one["waiting_pages"] = json::wide(waiting_pages);
    one["classes_in_use"] = json::classes(classes);
}

json::document document_of(const named_root &root) {
    json::document one{{"name", root.name}, {"address", text::hex(root.address)}};
    if (root.block.size_bytes != 0) {
        one["block"] = text::hex(root.block.address);
        one["block_bytes"] = json::wide(root.block.size_bytes);
    }
    if (!root.type.empty())
        one["type"] = root.type;
    return one;
}

void print_line(const char *label, const std::string &value) {
    std::printf("  %-9s %s\n", label, value.c_str());
}

void print_classes(const std::vector<ty_class_stats> &classes) {
    char head[128];
    std::snprintf(head, sizeof head, "  %12s %10s %12s %14s %14s %7s", "block", "spans", "memory", "blocks", "live",
                  "full");
    std::printf("%s\n", in(ink::strong, head).c_str());
    for (const ty_class_stats &one : classes) {
        std::string block = one.block_bytes != 0 ? text::count(one.block_bytes) : "whole pages";
        double full = static_cast<double>(one.live_bytes) / static_cast<double>(one.span_bytes);
        std::printf("  %12s %10s %12s %14s %14s %7s\n", block.c_str(), text::count(one.spans).c_str(),
                    text::size(one.span_bytes).c_str(), text::count(one.block_count).c_str(),
                    text::count(one.live_blocks).c_str(), text::percent(full).c_str());
    }
}

void print_roots(const std::vector<named_root> &roots) {
    if (roots.empty())
        return;
    size_t widest = 4;
    for (const named_root &root : roots)
        widest = std::max(widest, text::printable(root.name).size());
    constexpr size_t others = 2 + 2 + 14 + 2 + 12 + 2; // columns for other than name and type
    const size_t width = std::min<size_t>(widest, columns() > others + 24 ? columns() - others - 16 : 8);
    char head[128];
    std::snprintf(head, sizeof head, "  %-*s  %-14s  %12s  %s", static_cast<int>(std::min<size_t>(width, 64)), "root",
                  "address", "block", "type");
    std::printf("%s\n", in(ink::strong, head).c_str());
    for (const named_root &root : roots) {
        const std::string block = root.block.size_bytes != 0 ? text::count(root.block.size_bytes) : "none";
        const std::string type = root.type.empty() ? "" : "  " + text::printable(root.type);
        std::printf("  %-*s  %-14s  %12s%s\n", static_cast<int>(width), cut(text::printable(root.name), width).c_str(),
                    text::hex(root.address).c_str(), block.c_str(), type.c_str());
    }
}

uint64_t used_log_bytes(const ty_log_info &info) {
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < info.streams; ++p)
        bytes += info.in_stream[p].end_position - info.in_stream[p].start_position;
    return bytes;
}

} // namespace cli
