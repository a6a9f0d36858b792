// taiyen log: what the log of a transactional heap holds behind the last snapshot.
#include "commands.hpp"
#include "text.hpp"

#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

constexpr uint64_t shown_bytes_max = 32; // of an entry's bytes

std::string identity_of(const uint8_t (&identity)[16]) {
    std::string hex;
    for (uint8_t byte : identity) {
        static constexpr char digits[] = "0123456789abcdef";
        hex += digits[byte >> 4];
        hex += digits[byte & 15];
    }
    return hex;
}

void print_json(const std::string &path, const ty_log_info &info) {
    nlohmann::ordered_json json;
    json["path"] = path;
    json["format_version"] = info.format_version;
    json["heap_identity"] = identity_of(info.heap_identity);
    json["log_identity"] = info.log_identity;
    json["size_bytes"] = info.size_bytes;
    json["block_bytes"] = info.block_bytes;
    json["start_position"] = info.start_position;
    json["end_position"] = info.end_position;
    json["first_sequence"] = info.first_sequence;
    json["transactions"] = info.transactions;
    json["frames"] = info.frames;
    json["record_bytes"] = info.record_bytes;
    json["data_entries"] = info.data_entries;
    json["changed_bytes"] = info.changed_bytes;
    json["operations"] = info.operations;
    json["procedures"] = info.procedures;
    std::puts(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void print_words(const std::string &path, const ty_log_info &info) {
    const uint64_t in_use = info.end_position - info.start_position;
    std::printf("%s: its log has format %u and %s in blocks of %s\n", text::printable(path).c_str(),
                info.format_version, text::size(info.size_bytes).c_str(), text::size(info.block_bytes).c_str());
    std::printf("  in use    %s (%s)\n", text::size(in_use).c_str(),
                text::percent(double(in_use) / double(info.size_bytes)).c_str());
    if (info.transactions == 0) {
        std::printf("  replay    nothing: the last snapshot holds all transactions\n");
        return;
    }
    std::printf("  replay    %s, numbers %" PRIu64 " to %" PRIu64 "; %s of records in %s\n",
                text::counted(info.transactions, "transaction").c_str(), info.first_sequence,
                info.first_sequence + info.transactions - 1, text::size(info.record_bytes).c_str(),
                text::counted(info.frames, "frame").c_str());
    std::printf("  entries   %s of data, %s in all, %s, %s\n",
                text::counted(info.data_entries, "changed piece").c_str(), text::size(info.changed_bytes).c_str(),
                text::counted(info.operations, "operation").c_str(),
                text::counted(info.procedures, "procedure").c_str());
}

std::string bytes_of(const ty_log_entry &entry) {
    const auto *bytes = static_cast<const unsigned char *>(entry.bytes);
    std::string line;
    for (uint64_t i = 0; i < entry.size_bytes && i < shown_bytes_max; ++i) {
        char pair[4];
        std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
        line += pair;
    }
    return entry.size_bytes > shown_bytes_max ? line + "..." : line;
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

bool print_entry(const ty_log_entry *entry, void *) {
    switch (entry->kind) {
    case TY_LOG_TRANSACTION:
        std::printf("transaction %" PRIu64 " at %" PRIu64 ", %" PRIu64 " bytes\n", entry->sequence, entry->position,
                    entry->size_bytes);
        break;
    case TY_LOG_DATA:
        std::printf("  data 0x%" PRIx64 " %" PRIu64 " %s\n", entry->address, entry->size_bytes,
                    bytes_of(*entry).c_str());
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
                    bytes_of(*entry).c_str());
        break;
    }
    return std::ferror(stdout) == 0; // nobody reads any more: main says so
}

} // namespace

int log_stat(const heap_files &files, bool json) {
    const ty_open_options options = files.options();
    ty_log_info info{};
    info.struct_size = sizeof info;
    if (ty_status status = ty_log_read_with(files.path.c_str(), &options, &info, nullptr, nullptr))
        return complain(status);
    if (json)
        print_json(files.path, info);
    else
        print_words(files.path, info);
    return exit_fine;
}

int log_dump(const heap_files &files) {
    const ty_open_options options = files.options();
    if (ty_status status = ty_log_read_with(files.path.c_str(), &options, nullptr, print_entry, nullptr))
        return complain(status);
    return exit_fine;
}

} // namespace cli
