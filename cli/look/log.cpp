// taiyen log: the records in a transactional heap's log after the last snapshot.
#include "common/text.hpp"
#include "look/reading.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

constexpr uint64_t entry_bytes_max = 32; // of an entry's bytes

json::document streams_of(const ty_log_info &info) {
    json::document all = json::document::array();
    for (uint32_t p = 0; p < info.streams; ++p) {
        const ty_log_stream &one = info.in_stream[p];
        all.push_back({{"start_position", json::wide(one.start_position)},
                       {"end_position", json::wide(one.end_position)},
                       {"transactions", json::wide(one.transactions)},
                       {"record_bytes", json::wide(one.record_bytes)}});
    }
    return all;
}

} // namespace

json::document document_of(const std::string &path, const ty_log_info &info) {
    return {{"path", path},
            {"format_version", info.format_version},
            {"heap_identity", json::identity(info.heap_identity)},
            {"log_identity", json::wide(info.log_identity)},
            {"size_bytes", json::wide(info.size_bytes)},
            {"block_bytes", info.block_bytes},
            {"start_position", json::wide(info.start_position)},
            {"end_position", json::wide(info.end_position)},
            {"first_lsn", json::wide(info.first_lsn)},
            {"transactions", json::wide(info.transactions)},
            {"frames", json::wide(info.frames)},
            {"record_bytes", json::wide(info.record_bytes)},
            {"data_entries", json::wide(info.data_entries)},
            {"changed_bytes", json::wide(info.changed_bytes)},
            {"operations", json::wide(info.operations)},
            {"procedures", json::wide(info.procedures)},
            {"left_out", json::wide(info.left_out)},
            {"log_streams", streams_of(info)}};
}

namespace {

void print_streams(const ty_log_info &info) {
    for (uint32_t p = 0; p < info.streams; ++p) {
        const ty_log_stream &one = info.in_stream[p];
        std::printf("  log stream %u: %s in use, %s, %s of records\n", p,
                    text::size(one.end_position - one.start_position).c_str(),
                    text::counted(one.transactions, "transaction").c_str(), text::size(one.record_bytes).c_str());
    }
    if (info.left_out)
        std::printf("  left out  %s: one before them is missing, they were not acknowledged\n",
                    text::counted(info.left_out, "transaction").c_str());
}

void print_words(const std::string &path, const ty_log_info &info) {
    const uint64_t in_use = used_log_bytes(info);
    std::printf("%s: its log has format %u and %s in blocks of %s\n", text::printable(path).c_str(),
                info.format_version, text::size(info.size_bytes).c_str(), text::size(info.block_bytes).c_str());
    std::printf("  in use    %s (%s)\n", text::size(in_use).c_str(),
                text::percent(double(in_use) / double(info.size_bytes)).c_str());
    if (info.streams > 1)
        print_streams(info);
    if (info.transactions == 0) {
        std::printf("  replay    nothing: the last snapshot holds all transactions\n");
        return;
    }
    std::string numbers = "number " + std::to_string(info.first_lsn);
    if (info.left_out)
        numbers = "from " + numbers + " on";
    else if (info.transactions > 1)
        numbers = "numbers " + std::to_string(info.first_lsn) + " to " +
                  std::to_string(info.first_lsn + info.transactions - 1);
    std::printf("  replay    %s, %s; %s of records in %s\n", text::counted(info.transactions, "transaction").c_str(),
                numbers.c_str(), text::size(info.record_bytes).c_str(), text::counted(info.frames, "frame").c_str());
    std::printf("  entries   %s of data, %s in all, %s, %s\n",
                text::counted(info.data_entries, "changed piece").c_str(), text::size(info.changed_bytes).c_str(),
                text::counted(info.operations, "operation").c_str(),
                text::counted(info.procedures, "procedure").c_str());
}

std::string hex_of(const ty_log_entry &entry, uint64_t bytes_max) {
    const uint64_t shown = std::min(entry.size_bytes, bytes_max);
    const std::string line =
        text::hex_bytes(std::string(static_cast<const char *>(entry.bytes), static_cast<size_t>(shown)));
    return entry.size_bytes > bytes_max ? line + "..." : line;
}

// Printable characters as they are, others as \xNN.
std::string name_in(const ty_log_entry &entry) {
    const auto *bytes = static_cast<const unsigned char *>(entry.bytes);
    std::string line;
    for (uint64_t i = 0; i < entry.size_bytes; ++i) {
        char code[5];
        std::snprintf(code, sizeof code, "\\x%02x", bytes[i]);
        line += bytes[i] >= 0x20 && bytes[i] < 0x7f ? std::string(1, char(bytes[i])) : code;
    }
    return line;
}

struct dumped {
    const heap_files *files;
    uint32_t streams;
};

std::string place_of(const ty_log_entry &entry, uint32_t streams) {
    if (streams < 2)
        return {};
    return " in log stream " + std::to_string(entry.stream) + (entry.independent ? ", independent" : "");
}

const char *outcome_name(const ty_log_entry &entry) {
    return entry.size_bytes ? "committed" : "rolled back";
}

bool print_entry(const ty_log_entry *entry, void *context) {
    switch (entry->kind) {
    case TY_LOG_TRANSACTION:
        std::printf("transaction %" PRIu64 " at %" PRIu64 ", %s%s\n", entry->lsn, entry->position,
                    text::counted(entry->size_bytes, "byte").c_str(),
                    place_of(*entry, static_cast<const dumped *>(context)->streams).c_str());
        break;
    case TY_LOG_DATA:
        std::printf("  data 0x%" PRIx64 " %" PRIu64 " %s\n", entry->address, entry->size_bytes,
                    hex_of(*entry, entry_bytes_max).c_str());
        break;
    case TY_LOG_ALLOC:
        std::printf("  alloc 0x%" PRIx64 " %" PRIu64 "\n", entry->address, entry->size_bytes);
        break;
    case TY_LOG_FREE:
        std::printf("  free 0x%" PRIx64 "\n", entry->address);
        break;
    case TY_LOG_RESIZE:
        std::printf("  resize 0x%" PRIx64 " %" PRIu64 "\n", entry->address, entry->size_bytes);
        break;
    case TY_LOG_ROOT:
        std::printf("  root 0x%" PRIx64 " %s\n", entry->address, name_in(*entry).c_str());
        break;
    case TY_LOG_PROCEDURE:
        std::printf("  procedure %" PRIu64 " %" PRIu64 " %s\n", entry->procedure, entry->size_bytes,
                    hex_of(*entry, entry_bytes_max).c_str());
        break;
    case TY_LOG_PREPARED:
        std::printf("  prepared %" PRIu64 " %s\n", entry->size_bytes, hex_of(*entry, entry_bytes_max).c_str());
        break;
    case TY_LOG_OUTCOME:
        std::printf("  outcome of the one before: %s\n", outcome_name(*entry));
        break;
    case TY_LOG_PENDING:
        std::printf("  pending: it counts with the prepared one that follows\n");
        break;
    }
    return std::ferror(stdout) == 0; // the reader has closed the pipe: main reports it
}

const char *entry_kind_name(ty_log_entry_kind kind) {
    switch (kind) {
    case TY_LOG_TRANSACTION:
        return "transaction";
    case TY_LOG_DATA:
        return "data";
    case TY_LOG_ALLOC:
        return "alloc";
    case TY_LOG_FREE:
        return "free";
    case TY_LOG_RESIZE:
        return "resize";
    case TY_LOG_ROOT:
        return "root";
    case TY_LOG_PROCEDURE:
        return "procedure";
    case TY_LOG_PREPARED:
        return "prepared";
    case TY_LOG_OUTCOME:
        return "outcome";
    case TY_LOG_PENDING:
        return "pending";
    }
    return "unknown";
}

bool print_entry_json(const ty_log_entry *entry, void *context) {
    const ty_log_entry_kind kind = entry->kind;
    json::document one{{"path", static_cast<const dumped *>(context)->files->path},
                       {"lsn", json::wide(entry->lsn)},
                       {"kind", entry_kind_name(kind)}};
    if (kind == TY_LOG_TRANSACTION) {
        one["position"] = json::wide(entry->position);
        one["log_stream"] = json::wide(entry->stream);
        one["independent"] = entry->independent;
    } else if (kind == TY_LOG_PROCEDURE) {
        one["procedure"] = json::wide(entry->procedure);
    } else if (kind == TY_LOG_OUTCOME) {
        one["outcome"] = outcome_name(*entry);
    } else if (kind != TY_LOG_PREPARED && kind != TY_LOG_PENDING) {
        one["address"] = text::hex(entry->address);
    }
    if (kind == TY_LOG_ROOT)
        one["name"] = std::string(static_cast<const char *>(entry->bytes), entry->size_bytes);
    else if (kind != TY_LOG_FREE && kind != TY_LOG_OUTCOME && kind != TY_LOG_PENDING)
        one["size_bytes"] = json::wide(entry->size_bytes);
    if (kind == TY_LOG_DATA || kind == TY_LOG_PROCEDURE || kind == TY_LOG_PREPARED)
        one["bytes"] = hex_of(*entry, entry->size_bytes);
    json::print(one);
    return std::ferror(stdout) == 0;
}

int log_stat_of(const heap_files &files, const request &given) {
    const ty_open_options options = files.options();
    ty_log_info info{};
    info.struct_size = sizeof info;
    if (ty_status status = ty_log_read(files.path.c_str(), &options, &info, nullptr, nullptr))
        return refuse(files, given, status);
    if (given.json)
        json::print(document_of(files.path, info));
    else
        print_words(files.path, info);
    return exit_fine;
}

int dump_of(const heap_files &files, const request &given) {
    const ty_open_options options = files.options();
    if (!given.json && given.paths.size() > 1)
        std::printf("%s:\n", text::printable(files.path).c_str());
    ty_log_info info{};
    info.struct_size = sizeof info;
    ty_log_entry_callback *none = [](const ty_log_entry *, void *) { return false; };
    if (ty_status status = ty_log_read(files.path.c_str(), &options, &info, none, nullptr))
        return refuse(files, given, status);
    dumped all{&files, info.streams};
    if (ty_status status =
            ty_log_read(files.path.c_str(), &options, nullptr, given.json ? print_entry_json : print_entry, &all))
        return refuse(files, given, status);
    return exit_fine;
}

} // namespace

int log_stat(const request &given) {
    return each_heap(given, log_stat_of);
}

int log_dump(const request &given) {
    return each_heap(given, dump_of);
}

} // namespace cli
