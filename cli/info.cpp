// taiyen info: what the files of a heap say, without opening it; and by size class, opened read-only.
#include "commands.hpp"
#include "text.hpp"

#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

namespace cli {

namespace {

const char *found_name(ty_found found) {
    switch (found) {
    case TY_FOUND_NOTHING:
        return "nothing";
    case TY_FOUND_CLOSED:
        return "closed";
    case TY_FOUND_CLOSED_BATCHES:
        return "closed_batches";
    case TY_FOUND_DIED:
        return "died";
    case TY_FOUND_DIED_WRITING:
        return "died_writing";
    case TY_FOUND_DIED_APPLYING:
        return "died_applying";
    }
    return "unknown";
}

const char *found_words(const ty_info &info) {
    if (info.in_use)
        return "it is open for writing now";
    switch (info.found) {
    case TY_FOUND_CLOSED:
        return "in order";
    case TY_FOUND_CLOSED_BATCHES:
        return "in order, with batches left to apply";
    case TY_FOUND_DIED:
        return "not: its process died, or the power failed, between snapshots";
    case TY_FOUND_DIED_WRITING:
        return "not: its process died, or the power failed, while a batch was being written";
    case TY_FOUND_DIED_APPLYING:
        return "not: its process died, or the power failed, with batches left to apply";
    case TY_FOUND_NOTHING:
        break;
    }
    return "nothing was found";
}

std::string identity_of(const ty_info &info) {
    std::string hex;
    for (uint8_t byte : info.identity) {
        static constexpr char digits[] = "0123456789abcdef";
        hex += digits[byte >> 4];
        hex += digits[byte & 15];
    }
    return hex;
}

const char *classes_name(ty_class_table classes) {
    return classes == TY_CLASSES_PACKED ? "packed" : "line";
}

std::string time_of(uint64_t unix_s) {
    const auto seconds = static_cast<time_t>(unix_s);
    tm local{};
    char text[64] = "unknown";
    if (localtime_r(&seconds, &local))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local);
    return text;
}

nlohmann::ordered_json classes_json(const std::vector<ty_class_stats> &classes) {
    auto all = nlohmann::ordered_json::array();
    for (const ty_class_stats &one : classes)
        all.push_back({{"block_bytes", one.block_bytes},
                       {"spans", one.spans},
                       {"span_bytes", one.span_bytes},
                       {"block_count", one.block_count},
                       {"live_blocks", one.live_blocks},
                       {"live_bytes", one.live_bytes}});
    return all;
}

void print_json(const std::string &path, const ty_info &info, const std::vector<ty_class_stats> *by_class) {
    nlohmann::ordered_json json;
    json["path"] = path;
    json["kind"] = kind_name(info.kind);
    json["format_version"] = info.format_version;
    json["identity"] = identity_of(info);
    json["base"] = text::hex(info.base);
    json["limit_bytes"] = info.limit_bytes;
    json["page_bytes"] = info.page_bytes;
    json["classes"] = classes_name(info.classes);
    json["image_epoch"] = info.image_epoch;
    json["epoch"] = info.epoch;
    json["batches"] = info.batches;
    json["batch_pages"] = info.batch_pages;
    json["closed"] = info.closed;
    json["in_use"] = info.in_use;
    json["image_bytes"] = info.image_bytes;
    json["journal_bytes"] = info.journal_bytes;
    json["created_unix_s"] = info.created_unix_s;
    if (info.kind == TY_TRANSACTIONAL) {
        json["log_identity"] = info.log_identity;
        json["log_position"] = info.log_position;
        json["log_sequence"] = info.log_sequence;
    }
    json["found"] = found_name(info.found);
    json["open_text"] = as_options(info.open_text);
    if (by_class != nullptr)
        json["classes_in_use"] = classes_json(*by_class);
    // A path need not be UTF-8; what is not is replaced.
    std::puts(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_line(const char *label, const std::string &value) {
    std::printf("  %-9s %s\n", label, value.c_str());
}

bool has_journal(const ty_info &info) {
    return info.kind == TY_SNAPSHOT || info.kind == TY_TRANSACTIONAL;
}

// What an open would replay, where the log is beside the heap.
std::string log_of(const heap_files &files, const ty_info &info) {
    std::string line = "the snapshot holds the transactions up to number " + text::count(info.log_sequence);
    ty_log_info log{};
    log.struct_size = sizeof log;
    const ty_open_options options = files.options();
    if (ty_log_read_with(files.path.c_str(), &options, &log, nullptr, nullptr))
        return line + "; the log: " + as_options(ty_error_text());
    return line + "; the log holds " + text::counted(log.transactions, "transaction") + " behind it, " +
           text::size(log.record_bytes) + ", to replay";
}

std::string epochs_of(const ty_info &info) {
    std::string line = "the last snapshot is number " + text::count(info.epoch);
    if (!has_journal(info))
        return line;
    if (info.epoch == info.image_epoch)
        return line + ", and the image holds it";
    return line + "; the image holds number " + text::count(info.image_epoch) + ", the journal " +
           text::counted(info.batches, "batch") + " of " + text::counted(info.batch_pages, "page") + " to apply";
}

void print_words(const heap_files &files, const ty_info &info) {
    std::printf("%s: %s heap, format %u\n", text::printable(files.path).c_str(), kind_name(info.kind),
                info.format_version);
    print_line("identity", identity_of(info));
    print_line("created", time_of(info.created_unix_s));
    print_line("base", text::hex(info.base));
    print_line("limit", text::size(info.limit_bytes) + " of address space, pages of " + text::size(info.page_bytes) +
                            ", size classes: " + classes_name(info.classes));
    std::string disk = "image " + text::size(info.image_bytes);
    if (has_journal(info))
        disk += ", journal " + text::size(info.journal_bytes);
    print_line("on disk", disk);
    print_line("snapshot", epochs_of(info));
    if (info.kind == TY_TRANSACTIONAL)
        print_line("log", log_of(files, info));
    print_line("closed", found_words(info));
    print_line("an open", as_options(info.open_text));
}

void print_classes(const std::vector<ty_class_stats> &classes) {
    std::printf("  %12s %10s %12s %14s %14s %7s\n", "block", "spans", "memory", "blocks", "live", "full");
    for (const ty_class_stats &one : classes) {
        std::string block = one.block_bytes != 0 ? text::count(one.block_bytes) : "whole pages";
        double full = static_cast<double>(one.live_bytes) / static_cast<double>(one.span_bytes);
        std::printf("  %12s %10s %12s %14s %14s %7s\n", block.c_str(), text::count(one.spans).c_str(),
                    text::size(one.span_bytes).c_str(), text::count(one.block_count).c_str(),
                    text::count(one.live_blocks).c_str(), text::percent(full).c_str());
    }
}

int read_classes(const heap_files &files, std::vector<ty_class_stats> &classes) {
    const ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &options, &heap, nullptr))
        return complain(status);
    auto keep = [](const ty_class_stats *one, void *all) {
        static_cast<std::vector<ty_class_stats> *>(all)->push_back(*one);
        return true;
    };
    int code = exit_fine;
    if (ty_status status = ty_each_class(heap, keep, &classes))
        code = complain(status);
    if (ty_status status = ty_close(heap))
        code = complain(status);
    return code;
}

} // namespace

int info(const heap_files &files, bool json, bool classes) {
    const ty_open_options options = files.options();
    ty_info info{};
    info.struct_size = sizeof info;
    if (ty_status status = ty_read_info_with(files.path.c_str(), &options, &info))
        return complain(status);
    std::vector<ty_class_stats> by_class;
    if (classes)
        if (int code = read_classes(files, by_class); code != exit_fine)
            return code;
    if (json)
        print_json(files.path, info, classes ? &by_class : nullptr);
    else
        print_words(files, info);
    if (!json && classes)
        print_classes(by_class);
    return exit_fine;
}

} // namespace cli
