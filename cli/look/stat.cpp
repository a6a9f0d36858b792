// taiyen stat: the metrics of a heap: files, log, blocks, roots, undo; once, or repeatedly.
#include "common/interrupts.hpp"
#include "common/numbers.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "common/times.hpp"
#include "look/metrics.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

// ---- for people

std::string share(uint64_t part, uint64_t whole) {
    return text::percent(whole != 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

void print_memory(const metrics &found) {
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

void print_undo(const metrics &found) {
    const ty_undo_stats &undo = found.undo;
    if (!found.damage.empty())
        print_line("undo", text::printable(found.damage));
    else if (found.has_undo)
        print_line("undo", text::counted(undo.undoable, "transaction") + " to undo, " + text::count(undo.redoable) +
                               " to redo; " + text::size(undo.undo_bytes) + " of " + text::size(undo.undo_size) +
                               " recorded; " + text::counted(undo.kept_blocks, "block") + " of " +
                               text::size(undo.kept_bytes) + " held");
}

void print_waiting(const metrics &found) {
    if (found.info.kind != TY_ARCHIVE)
        print_line("dirty", text::counted(found.heap.waiting_pages, "page") + " that the image does not hold yet");
    if (found.log.streams != 0)
        print_line("ring", text::size(used_log_bytes(found.log)) + " of " + text::size(found.log.size_bytes) +
                               " in use, " + share(used_log_bytes(found.log), found.log.size_bytes) + "; " +
                               text::size(found.log.changed_bytes) + " changed since the last snapshot");
}

void print_program(const metrics &found) {
    const ty_metrics &now = found.live.now;
    std::string line = "process " + std::to_string(now.process);
    if (now.known & TY_METRICS_TRANSACTIONS)
        line += ", " + text::counted(now.transactions, "transaction") + " since it opened the heap, " +
                text::counted(now.rollbacks, "rollback");
    if (now.known & TY_METRICS_SNAPSHOTS)
        line += ", " + text::counted(now.snapshots, "snapshot");
    if (now.known & TY_METRICS_DIRTY)
        line += "; the next one writes " + text::counted(now.dirty_pages, "page");
    print_line("program", line);
}

// The program's metrics of undo and of its private memory. Its undo is current; that of the heap's files is older.
void print_program_memory(const metrics &found) {
    const ty_metrics &now = found.live.now;
    if (now.known & TY_METRICS_UNDO)
        print_line("undo now", text::counted(now.undoable, "transaction") + " to undo, " + text::count(now.redoable) +
                                   " to redo; " + text::size(now.undo_used_bytes) + " of " +
                                   text::size(now.undo_room_bytes) + " used; " +
                                   text::counted(now.kept_blocks, "block") + " of " + text::size(now.kept_bytes) +
                                   " held");
    if (now.known & TY_METRICS_COPIES)
        print_line("memory", text::size(now.copies_bytes) + " of private copies, of " +
                                 text::size(now.memory_allowed_bytes) + " that it may have" +
                                 (now.memory_bound_bytes != 0 ? " by its options" : " on this machine"));
    else if (now.known & TY_METRICS_MEMORY && now.memory_bound_bytes != 0)
        print_line("memory", "up to " + text::size(now.memory_bound_bytes) +
                                 " of private copies by its options; it has touched less than that");
}

void print_words(const heap_files &files, const metrics &found) {
    print_info(files, found.info);
    if (found.is_live) {
        print_program(found);
        print_program_memory(found);
    }
    if (!found.opened)
        return;
    print_waiting(found);
    print_memory(found);
    print_undo(found);
    print_roots(found.roots);
    print_classes(found.heap.classes);
}

ty_status inspect_heap(const heap_files &files, metrics &found) {
    read_heap heap;
    if (ty_status status = heap.open(files))
        return status;
    if (ty_status status = found.look_into(heap))
        return status;
    return heap.close();
}

int stat_of(const heap_files &files, const request &given) {
    metrics found;
    if (ty_status status = found.look_at_files(files))
        return refuse(files, given, status);
    found.look_at_program(files);
    const ty_status status = inspect_heap(files, found);
    ty_error why;
    ty_error_detail(&why);
    if (given.json) {
        json::document one = document_of(files, found);
        if (given.watch)
            one["time"] = time_text(static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
        if (status)
            one["error"] = json::error(status);
        json::print(one);
    } else {
        print_words(files, found); // asks the library for more
    }
    if (status)
        static_cast<void>(ty_error_set(why.status, why.system_error, why.operation, why.path, why.offset, why.remedy));
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
