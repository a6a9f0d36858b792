// taiyen info: what the files of a heap say, without opening it.
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "look/reading.hpp"

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

const char *found_name(ty_recovery_state found) {
    switch (found) {
    case TY_RECOVERY_CREATED:
        return "nothing";
    case TY_RECOVERY_CLOSED:
        return "closed";
    case TY_RECOVERY_CLOSED_BATCHES:
        return "closed_batches";
    case TY_RECOVERY_CRASHED:
        return "crashed";
    case TY_RECOVERY_CRASHED_WRITING:
        return "crashed_writing";
    case TY_RECOVERY_CRASHED_BATCHES:
        return "crashed_checkpointing";
    case TY_RECOVERY_IN_USE:
        return "in_use";
    }
    return "unknown";
}

const char *found_words(const ty_info &info) {
    switch (info.found) {
    case TY_RECOVERY_CLOSED:
        return "in order";
    case TY_RECOVERY_CLOSED_BATCHES:
        return "in order, with batches left to checkpoint";
    case TY_RECOVERY_CRASHED:
        return "not: its process died, or the power failed, between snapshots";
    case TY_RECOVERY_CRASHED_WRITING:
        return "not: its process died, or the power failed, while a batch was being written";
    case TY_RECOVERY_CRASHED_BATCHES:
        return "not: its process died, or the power failed, with batches left to checkpoint";
    case TY_RECOVERY_IN_USE:
        return "it is open for writing now";
    case TY_RECOVERY_CREATED:
        break;
    }
    return "nothing was found";
}

const char *classes_name(ty_class_table classes) {
    return classes == TY_CLASSES_DENSE ? "dense" : "cache-line";
}

std::string time_of(uint64_t unix_s) {
    const auto seconds = static_cast<time_t>(unix_s);
    tm local{};
    char text[64] = "unknown";
    if (localtime_r(&seconds, &local))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local);
    return text;
}

} // namespace

json::document document_of(const std::string &path, const ty_info &info) {
    json::document one;
    one["path"] = path;
    one["kind"] = kind_name(info.kind);
    one["format_version"] = info.format_version;
    one["identity"] = json::identity(info.identity);
    one["base"] = text::hex(info.base);
    one["limit_bytes"] = json::wide(info.limit_bytes);
    one["page_bytes"] = info.page_bytes;
    one["classes"] = classes_name(info.classes);
    one["image_epoch"] = json::wide(info.image_epoch);
    one["epoch"] = json::wide(info.epoch);
    one["batches"] = json::wide(info.batches);
    one["batch_pages"] = json::wide(info.batch_pages);
    one["closed"] = info.closed;
    one["in_use"] = info.in_use;
    one["image_bytes"] = json::wide(info.image_bytes);
    one["journal_bytes"] = json::wide(info.journal_bytes);
    one["marks"] = json::wide(info.marks);
    one["marks_bytes"] = json::wide(info.marks_bytes);
    one["created_unix_s"] = json::wide(info.created_unix_s);
    if (info.kind == TY_TRANSACTIONAL) {
        one["log_identity"] = json::wide(info.log_identity);
        one["log_position"] = json::wide(info.log_position);
        one["log_lsn"] = json::wide(info.log_lsn);
    }
    one["found"] = found_name(info.found);
    one["open_text"] = as_options(info.open_text);
    return one;
}

namespace {

bool has_journal(const ty_info &info) {
    return info.kind == TY_SNAPSHOT || info.kind == TY_TRANSACTIONAL;
}

// What an open would replay, if the log is beside the heap.
std::string log_of(const heap_files &files, const ty_info &info) {
    std::string line = "the snapshot holds no transaction";
    if (info.log_lsn != 0)
        line = "the snapshot holds the transactions up to number " + text::count(info.log_lsn);
    ty_log_info log{};
    log.struct_size = sizeof log;
    const ty_open_options options = files.options();
    if (ty_log_read(files.path.c_str(), &options, &log, nullptr, nullptr))
        return line + "; the log: " + as_options(ty_error_text());
    return line + "; the log holds " + text::counted(log.transactions, "transaction") + " after it, " +
           text::size(log.record_bytes) + ", to replay";
}

std::string epochs_of(const ty_info &info) {
    std::string line = "the last snapshot is number " + text::count(info.epoch);
    if (!has_journal(info))
        return line;
    if (info.epoch == info.image_epoch)
        return line + ", and the image holds it";
    return line + "; the image holds number " + text::count(info.image_epoch) + ", the journal " +
           text::counted(info.batches, "batch") + " of " + text::counted(info.batch_pages, "page") + " to checkpoint";
}

} // namespace

void print_info(const heap_files &files, const ty_info &info) {
    std::printf("%s: %s heap, format %u\n", in(ink::strong, text::printable(files.path)).c_str(), kind_name(info.kind),
                info.format_version);
    print_line("identity", json::identity(info.identity));
    print_line("created", time_of(info.created_unix_s));
    print_line("base", text::hex(info.base));
    print_line("limit", text::size(info.limit_bytes) + " of address space, pages of " + text::size(info.page_bytes) +
                            ", size classes: " + classes_name(info.classes));
    std::string disk = "image " + text::size(info.image_bytes);
    if (has_journal(info))
        disk += ", journal " + text::size(info.journal_bytes);
    if (info.marks != 0)
        disk += ", " + text::counted(info.marks, "durable mark") + " " + text::size(info.marks_bytes);
    print_line("on disk", disk);
    print_line("snapshot", epochs_of(info));
    if (info.kind == TY_TRANSACTIONAL)
        print_line("log", log_of(files, info));
    print_line("closed", found_words(info));
    print_line("an open", as_options(info.open_text));
}

namespace {

int info_of(const heap_files &files, const request &given) {
    const ty_open_options options = files.options();
    ty_info info{};
    info.struct_size = sizeof info;
    if (ty_status status = ty_read_info(files.path.c_str(), &options, &info))
        return refuse(files, given, status);
    if (given.json)
        json::print(document_of(files.path, info));
    else
        print_info(files, info);
    return exit_fine;
}

} // namespace

int info(const request &given) {
    return each_heap(given, info_of);
}

} // namespace cli
