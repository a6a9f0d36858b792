// taiyen stat: the figures of a heap: files, log, blocks, roots, undo; once, or again and again.
#include "interrupts.hpp"
#include "numbers.hpp"
#include "reading.hpp"
#include "terminal.hpp"
#include "text.hpp"
#include "times.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace cli {

namespace {

struct figures {
    ty_info info{};
    ty_log_info log{}; // partitions 0: there is none, or it cannot be read, which info says
    bool opened = false;
    heap_figures heap;
    std::vector<named_root> roots;
    own_blocks own;
    ty_undo_stats undo{};
    bool has_undo = false;
    std::string damage; // of undo's buffers
};

// What the files say; needs no open.
ty_status look_at_files(const heap_files &files, figures &found) {
    const ty_open_options options = files.options();
    found.info.struct_size = sizeof found.info;
    if (ty_status status = ty_read_info_with(files.path.c_str(), &options, &found.info))
        return status;
    found.log.struct_size = sizeof found.log;
    if (found.info.kind == TY_TRANSACTIONAL &&
        ty_log_read_with(files.path.c_str(), &options, &found.log, nullptr, nullptr) != TY_OK)
        found.log = {};
    return TY_OK;
}

void look_at_undo(ty_heap *heap, figures &found) {
    found.undo.struct_size = sizeof found.undo;
    const ty_status status = ty_get_undo_stats(heap, &found.undo);
    found.has_undo = status == TY_OK;
    if (status != TY_OK && status != TY_E_NOT_FOUND)
        found.damage = ty_error_text();
}

ty_status look_into_heap(const heap_files &files, figures &found) {
    read_heap heap;
    if (ty_status status = heap.open(files))
        return status;
    if (ty_status status = found.heap.read(heap))
        return status;
    if (ty_status status = roots_of(heap, found.roots))
        return status;
    look_at_undo(heap, found);
    if (own_blocks_of(heap, found.own) != TY_OK && found.damage.empty())
        found.damage = ty_error_text();
    found.opened = true;
    return heap.close();
}

// ---- JSON

json::document undo_document(const ty_undo_stats &undo) {
    return {{"undoable", json::wide(undo.undoable)},       {"redoable", json::wide(undo.redoable)},
            {"undo_bytes", json::wide(undo.undo_bytes)},   {"undo_size", json::wide(undo.undo_size)},
            {"redo_bytes", json::wide(undo.redo_bytes)},   {"redo_size", json::wide(undo.redo_size)},
            {"held_blocks", json::wide(undo.held_blocks)}, {"held_bytes", json::wide(undo.held_bytes)}};
}

json::document stat_document(const heap_files &files, const figures &found) {
    json::document one = document_of(files.path, found.info);
    if (found.log.partitions != 0) {
        one["log"] = document_of(files.path, found.log);
        one["log"].erase("path");
        one["log"]["used_bytes"] = json::wide(used_log_bytes(found.log));
    }
    if (!found.opened)
        return one;
    found.heap.add_to(one);
    one["roots"] = json::document::array();
    for (const named_root &root : found.roots)
        one["roots"].push_back(document_of(root));
    one["own_blocks"] = json::wide(found.own.count);
    one["own_bytes"] = json::wide(found.own.bytes);
    if (found.has_undo)
        one["undo"] = undo_document(found.undo);
    if (!found.damage.empty())
        one["damage"] = found.damage;
    return one;
}

// ---- for people

std::string share(uint64_t part, uint64_t whole) {
    return text::percent(whole != 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

void print_memory(const figures &found) {
    const ty_heap_stats &stats = found.heap.stats;
    std::string blocks = text::counted(stats.live_blocks, "block") + " of " + text::size(stats.live_bytes);
    if (found.own.count != 0)
        blocks += ", of which the library has " + text::count(found.own.count) + " of " + text::size(found.own.bytes);
    print_line("blocks", blocks);
    print_line("pages", text::size(stats.used_bytes) + " with blocks, filled to " +
                            text::percent(found.heap.page_efficiency()) + "; control data " +
                            text::size(stats.control_bytes));
    print_line("touched",
               text::size(stats.touched_bytes) + " of the limit, " + share(stats.touched_bytes, stats.limit_bytes));
    print_line("free", text::size(stats.free_bytes) + " of these, of which " + text::percent(stats.availability) +
                           " can be used; the largest block that can be had: " + text::size(stats.largest_free_bytes));
}

void print_undo(const figures &found) {
    const ty_undo_stats &undo = found.undo;
    if (!found.damage.empty())
        print_line("undo", text::printable(found.damage));
    else if (found.has_undo)
        print_line("undo", text::counted(undo.undoable, "transaction") + " to undo, " + text::count(undo.redoable) +
                               " to redo; " + text::size(undo.undo_bytes) + " of " + text::size(undo.undo_size) +
                               " recorded; " + text::counted(undo.held_blocks, "block") + " of " +
                               text::size(undo.held_bytes) + " held");
}

void print_waiting(const figures &found) {
    if (found.info.kind != TY_ARCHIVE)
        print_line("dirty", text::counted(found.heap.waiting_pages, "page") + " that the image does not hold yet");
    if (found.log.partitions != 0)
        print_line("ring", text::size(used_log_bytes(found.log)) + " of " + text::size(found.log.size_bytes) +
                               " in use, " + share(used_log_bytes(found.log), found.log.size_bytes) + "; " +
                               text::size(found.log.changed_bytes) + " changed since the last snapshot");
}

void print_words(const heap_files &files, const figures &found) {
    print_info(files, found.info);
    if (!found.opened)
        return;
    print_waiting(found);
    print_memory(found);
    print_undo(found);
    print_roots(found.roots);
    print_classes(found.heap.classes);
}

int stat_of(const heap_files &files, const request &given) {
    figures found;
    if (ty_status status = look_at_files(files, found))
        return refuse(files, given, status);
    const ty_status status = look_into_heap(files, found);
    if (given.json) {
        json::document one = stat_document(files, found);
        if (given.watch)
            one["time"] = time_text(static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
        if (status)
            one["error"] = json::error(status);
        json::print(one);
    } else {
        print_words(files, found);
    }
    return status ? complain(status) : int(exit_fine);
}

// In place on a terminal; elsewhere one after the other.
int watch(const request &given, uint64_t interval_ms) {
    const bool in_place = on_terminal() && !given.json;
    end_with_interrupts();
    int code = exit_fine;
    while (!interrupted() && std::ferror(stdout) == 0) {
        if (in_place)
            std::fputs("\033[H\033[2J", stdout);
        code = each_heap(given, stat_of);
        std::fflush(stdout);
        pause_ms(interval_ms);
    }
    return code;
}

} // namespace

int stat_heaps(const request &given) {
    uint64_t interval_ms = 1000;
    if (!given.interval.empty() && !read_duration(given.interval, &interval_ms)) {
        refuse_value("interval", given.interval, "a time such as 2s or 1m");
        return exit_cannot;
    }
    return given.watch ? watch(given, interval_ms) : each_heap(given, stat_of);
}

} // namespace cli
