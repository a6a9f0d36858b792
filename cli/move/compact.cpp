// taiyen compact and check: both use type descriptors.
#include "commands.hpp"
#include "common/json.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "types/descriptors_file.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <taiyen/pack.h>

namespace cli {

namespace {

void print_result(const request &given, const ty_compact_report &report) {
    if (given.json) {
        json::print({{"path", given.paths[0]},
                     {"live_blocks", json::wide(report.live_blocks)},
                     {"live_bytes", json::wide(report.live_bytes)},
                     {"moved_blocks", json::wide(report.moved_blocks)},
                     {"old_used_bytes", json::wide(report.old_used_bytes)},
                     {"used_bytes", json::wide(report.used_bytes)},
                     {"fixed_pointers", json::wide(report.fixed_pointers)},
                     {"duration_ns", json::wide(report.duration_ns)}});
        return;
    }
    std::printf("%s: %s of %s moved; used %s, was %s; %s fixed\n", text::printable(given.paths[0]).c_str(),
                text::count(report.moved_blocks).c_str(), text::counted(report.live_blocks, "block").c_str(),
                text::size(report.used_bytes).c_str(), text::size(report.old_used_bytes).c_str(),
                text::counted(report.fixed_pointers, "pointer").c_str());
}

// The size of a transactional heap's log, to recreate it.
struct log_size {
    size_t bytes = 0;
    uint32_t streams = 0;
};

// Where the library looks for the log: beside the file that the path leads to.
std::string log_path_of(const heap_files &files) {
    if (!files.log_path.empty())
        return files.log_path;
    std::error_code failed;
    const std::filesystem::path resolved = std::filesystem::canonical(files.path, failed);
    return (failed ? files.path : resolved.string()) + "-log";
}

log_size log_of(const heap_files &files) {
    log_size found;
    ty_log_info info{};
    info.struct_size = sizeof info;
    const ty_open_options open = files.options();
    if (ty_log_read(files.path.c_str(), &open, &info, nullptr, nullptr) == TY_OK)
        found = {info.size_bytes, info.streams};
    // info.size_bytes is that of the log's rings: with it, each recreated log would be shorter, and in the end too
    // short.
    std::error_code failed;
    if (const uintmax_t bytes = std::filesystem::file_size(log_path_of(files), failed); found.bytes != 0 && !failed)
        found.bytes = static_cast<size_t>(bytes);
    return found;
}

// Opens the files for writing, with their own kind or as this kind.
ty_status open_to_write(const heap_files &files, ty_kind kind, log_size log, ty_heap **heap) {
    ty_open_options open = files.options();
    open.log_bytes = log.bytes;
    open.log_streams = log.streams;
    open.mode = TY_OPEN_EXISTING;
    open.kind = kind;
    return ty_open(files.path.c_str(), &open, heap, nullptr);
}

// Checks that the heap can be compacted, before anything is changed.
ty_status look_first(const heap_files &files, const request &given, const ty_types *descriptors) {
    ty_open_options open = files.options();
    open.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &open, &heap, nullptr))
        return status;
    described_descriptors kept;
    ty_status status = descriptors != nullptr || given.force ? TY_OK : kept.load(heap);
    if (status == TY_OK && !given.force)
        status = ty_audit_pointers(heap, descriptors != nullptr ? descriptors : kept.get(), nullptr, nullptr, nullptr);
    const kept_failure first;
    const ty_status closed = ty_close(heap);
    return status != TY_OK ? status : closed;
}

// If a compaction was killed while it recreated the log, this file was left, and the heap is a snapshot heap since.
// While the heap is open here, no other process creates a log.
ty_status clear_remains(const heap_files &files) {
    const std::string left = log_path_of(files) + "-creating";
    return std::remove(left.c_str()) == 0 || errno == ENOENT
               ? TY_OK
               : ty_error_set(TY_E_IO, errno, "remove what an interrupted compaction left", left.c_str(), UINT64_MAX,
                              "remove it");
}

// While it is compacted, a transactional heap is a snapshot heap, without a log.
ty_status compact_file(const heap_files &files, const request &given, ty_compact_report *report) {
    described_descriptors descriptors;
    if (ty_status status = descriptors.read(given.types_path))
        return status;
    if (ty_status status = look_first(files, given, descriptors.get()))
        return status;
    const log_size log = log_of(files);
    ty_heap *heap = nullptr;
    if (ty_status status = open_to_write(files, TY_KIND_DEFAULT, {}, &heap))
        return status;
    const bool transactional = ty_heap_kind(heap) == TY_TRANSACTIONAL;
    if (transactional) {
        if (ty_status status = ty_close(heap))
            return status;
        if (ty_status status = open_to_write(files, TY_SNAPSHOT, {}, &heap))
            return status;
    }
    if (ty_status status = clear_remains(files)) {
        const kept_failure first;
        static_cast<void>(ty_discard(heap)); // nothing was changed
        return status;
    }
    progress shown("compacting");
    ty_compact_options options = TY_COMPACT_OPTIONS_INIT;
    options.types = descriptors.get();
    options.force = given.force;
    options.progress = progress::report;
    options.progress_context = &shown;
    ty_status status = ty_compact(heap, &options, report);
    shown.clear();
    if (status != TY_OK) {
        const kept_failure first;
        static_cast<void>(ty_discard(heap)); // the files hold all that they held
        heap = nullptr;
        if (transactional && open_to_write(files, TY_TRANSACTIONAL, log, &heap) == TY_OK && ty_close(heap) != TY_OK)
            static_cast<void>(ty_discard(heap));
        return status;
    }
    status = ty_close(heap);
    if (status != TY_OK || !transactional)
        return status;
    if (status = open_to_write(files, TY_TRANSACTIONAL, log, &heap); status != TY_OK)
        return status;
    return ty_close(heap);
}

// ---- check

struct audit_words {
    const request &given;
    json::document mismatches = json::document::array();
    bool is_open = false; // an open one was seen; open ones come first
};

const char *kind_of(ty_audit_mismatch_kind kind) {
    switch (kind) {
    case TY_AUDIT_DEAD:
        return "dead";
    case TY_AUDIT_HIDDEN:
        return "hidden";
    case TY_AUDIT_LEAK:
        return "leak";
    case TY_AUDIT_CODE:
        return "code";
    case TY_AUDIT_HOOK:
        return "hook";
    case TY_AUDIT_ROOT:
        return "root";
    }
    return "unknown";
}

bool on_mismatch(const ty_audit_mismatch *mismatch, void *context) {
    auto &words = *static_cast<audit_words *>(context);
    if (!words.given.json) {
        // A block that nothing leads to may be reached by a pointer that no field names.
        words.is_open = words.is_open || mismatch->open;
        const bool harmless = !mismatch->open && (mismatch->kind != TY_AUDIT_LEAK || !words.is_open);
        std::printf("%s: %s%s\n", text::printable(words.given.paths[0]).c_str(), harmless ? "(harmless) " : "",
                    text::printable(mismatch->text).c_str());
        return true;
    }
    json::document one{{"kind", kind_of(mismatch->kind)}, {"open", mismatch->open}};
    if (mismatch->descriptor != nullptr)
        one["type"] = mismatch->descriptor;
    if (mismatch->field != nullptr)
        one["field"] = mismatch->field;
    one["offset"] = json::wide(mismatch->offset);
    one["count"] = json::wide(mismatch->count);
    one["of"] = json::wide(mismatch->of);
    one["bytes"] = json::wide(mismatch->bytes);
    one["example"] = text::hex(mismatch->example);
    one["value"] = text::hex(mismatch->value);
    one["text"] = mismatch->text;
    words.mismatches.push_back(one);
    return true;
}

void print_audit(const request &given, const audit_words &words, const ty_audit &audit) {
    if (given.json) {
        json::print({{"path", given.paths[0]},
                     {"sound", audit.open_mismatches == 0},
                     {"blocks", json::wide(audit.blocks)},
                     {"reached_blocks", json::wide(audit.reached_blocks)},
                     {"objects", json::wide(audit.objects)},
                     {"pointers", json::wide(audit.pointers)},
                     {"mismatches", words.mismatches},
                     {"duration_ns", json::wide(audit.duration_ns)}});
        return;
    }
    std::printf("%s: %s; %s reached of %s, by %s\n", text::printable(given.paths[0]).c_str(),
                audit.open_mismatches == 0 ? "sound" : text::counted(audit.open_mismatches, "problem").c_str(),
                text::counted(audit.reached_blocks, "block").c_str(), text::count(audit.blocks).c_str(),
                text::counted(audit.pointers, "pointer").c_str());
}

// The type descriptors that are given, or those that the heap keeps.
ty_status find_descriptors(const request &given, ty_heap *heap, described_descriptors &descriptors) {
    return given.types_path.empty() ? descriptors.load(heap) : descriptors.read(given.types_path);
}

int check_pointers(const heap_files &files, const request &given) {
    const ty_open_options open = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &open, &heap, nullptr))
        return refuse(files, given, status);
    described_descriptors descriptors;
    ty_status status = find_descriptors(given, heap, descriptors);
    audit_words words{given};
    ty_audit audit{};
    audit.struct_size = sizeof audit;
    if (status == TY_OK)
        status = ty_audit_pointers(heap, descriptors.get(), on_mismatch, &words, &audit);
    int code = exit_problems;
    if (status != TY_OK && (status != TY_E_MISMATCH || audit.open_mismatches == 0))
        code = refuse(files, given, status);
    else
        print_audit(given, words, audit);
    const ty_status closed = ty_close(heap);
    return status != TY_OK ? code : closed != TY_OK ? complain(closed) : int(exit_fine);
}

int check_packed(const request &given) {
    FILE *file = std::fopen(given.paths[0].c_str(), "rb");
    if (file == nullptr) {
        ty_error_set(TY_E_NOT_FOUND, errno, "open a packed heap", given.paths[0].c_str(), UINT64_MAX,
                     "give the path of a packed heap, or --pointers with that of a heap");
        return refuse({given.paths[0], "", ""}, given, TY_E_NOT_FOUND);
    }
    progress shown("checking");
    ty_pack_info info{};
    info.struct_size = sizeof info;
    auto read = [](void *bytes, size_t size, size_t *got, void *context) {
        auto *from = static_cast<FILE *>(context);
        *got = std::fread(bytes, 1, size, from);
        return *got != 0 || !std::ferror(from) ? TY_OK
                                               : ty_error_set(TY_E_IO, errno, "read a packed heap", nullptr, UINT64_MAX,
                                                              "see to the file or the device");
    };
    const ty_status status = ty_verify_pack(read, file, progress::report, &shown, &info);
    shown.clear();
    std::fclose(file);
    if (status != TY_OK)
        return refuse({given.paths[0], "", ""}, given, status);
    if (given.json)
        json::print({{"path", given.paths[0]},
                     {"sound", true},
                     {"kind", kind_name(info.kind)},
                     {"base", text::hex(info.base)},
                     {"limit_bytes", json::wide(info.limit_bytes)},
                     {"live_blocks", json::wide(info.live_blocks)},
                     {"live_bytes", json::wide(info.live_bytes)},
                     {"roots", json::wide(info.roots)},
                     {"packed_unix_s", json::wide(info.packed_unix_s)}});
    else
        std::printf("%s: a sound packed heap (%s, at %s): %s of %s\n", text::printable(given.paths[0]).c_str(),
                    kind_name(info.kind), text::hex(info.base).c_str(),
                    text::counted(info.live_blocks, "block").c_str(), text::size(info.live_bytes).c_str());
    return exit_fine;
}

} // namespace

int compact(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    ty_compact_report report{};
    report.struct_size = sizeof report;
    if (ty_status status = compact_file(files, given, &report))
        return refuse(files, given, status);
    print_result(given, report);
    return exit_fine;
}

int check(const request &given) {
    return given.pointers ? check_pointers({given.paths[0], given.journal_path, given.log_path}, given)
                          : check_packed(given);
}

} // namespace cli
