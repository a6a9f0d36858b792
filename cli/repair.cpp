// taiyen repair: another heap, of what can be had of a damaged one.
#include "repair.hpp"

#include "making.hpp"
#include "text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <taiyen/rescue.h>
#include <unistd.h>

namespace cli {

namespace {

constexpr uint64_t page_bytes = 4096;
constexpr size_t shown_blocks_max = 20;
constexpr size_t problems_max = 100;

void note_problem(const char *text, void *context) {
    auto &report = *static_cast<repair_report *>(context);
    if (report.problems.size() < problems_max)
        report.problems.push_back(as_options(text));
}

// CL6.
void note_page(uint64_t page, bool, void *context) {
    static_cast<repair_report *>(context)->pages.insert(page);
}

// ---- The log's transactions, done again

class redoer {
public:
    redoer(ty_heap *heap, repair_report &report) : heap_(heap), report_(report) {}

    static bool take(const ty_log_entry *entry, void *self) { return static_cast<redoer *>(self)->take(*entry); }
    void end() {
        if (begun_ && !stopped_)
            end_transaction();
    }
    uint64_t in_doubt() const { return held_count_; }

private:
    struct change {
        ty_log_entry_kind kind;
        uint64_t address;
        uint64_t size_bytes;
        std::string bytes;
    };

    bool take(const ty_log_entry &entry) {
        switch (entry.kind) {
        case TY_LOG_TRANSACTION:
            end();
            begun_ = true;
            sequence_ = entry.sequence;
            break;
        case TY_LOG_PREPARED:
        case TY_LOG_PENDING:
            waits_ = true;
            break;
        case TY_LOG_OUTCOME:
            decides_ = true;
            committed_ = entry.size_bytes != 0;
            break;
        case TY_LOG_PROCEDURE:
            calls_ = true;
            break;
        default:
            keep(entry);
            break;
        }
        return !stopped_;
    }
    void keep(const ty_log_entry &entry) {
        const bool has_bytes = entry.kind == TY_LOG_DATA || entry.kind == TY_LOG_ROOT;
        changes_.push_back({entry.kind, entry.address, entry.size_bytes,
                            has_bytes ? std::string(static_cast<const char *>(entry.bytes), entry.size_bytes) : ""});
    }
    // A transaction counts at its end; one that was prepared, when its outcome says so.
    void end_transaction() {
        stopped_ = calls_; // what follows would stand on what is not there
        if (stopped_)
            report_.first_unapplied = sequence_;
        else if (waits_) {
            std::move(changes_.begin(), changes_.end(), std::back_inserter(held_));
            ++held_count_;
        } else {
            if (decides_ && committed_)
                redo(held_, held_count_);
            if (decides_) {
                held_.clear();
                held_count_ = 0;
            }
            redo(changes_, 1);
        }
        changes_.clear();
        waits_ = decides_ = calls_ = begun_ = false;
    }
    void redo(const std::vector<change> &changes, uint64_t count) {
        for (const change &one : changes)
            if (!redo(one))
                ++report_.failed_entries;
        report_.transactions += count;
    }
    bool redo(const change &one) {
        auto *address = reinterpret_cast<void *>(one.address);
        if (one.address != 0 && ty_heap_of(address) != heap_)
            return false;
        ty_block block{};
        const bool live = one.address != 0 && ty_block_of(address, &block) == TY_OK && block.address == address;
        switch (one.kind) {
        case TY_LOG_ALLOC:
            return ty_alloc_at(heap_, address, one.size_bytes) == TY_OK && zero(address, 0);
        case TY_LOG_FREE:
            return live && ty_free(address) == TY_OK;
        case TY_LOG_RESIZE:
            return live && ty_resize_in_place(address, one.size_bytes) == TY_OK && zero(address, block.size_bytes);
        case TY_LOG_ROOT:
            return ty_root_set(heap_, one.bytes.c_str(), address) == TY_OK;
        case TY_LOG_DATA:
            return write(one.address, one.bytes);
        default:
            return true;
        }
    }
    // What a transaction gains is zeros, and is logged only where it was written to.
    static bool zero(void *address, size_t from) {
        ty_block block{};
        if (ty_block_of(address, &block) != TY_OK)
            return false;
        if (from < block.size_bytes)
            std::memset(static_cast<char *>(address) + from, 0, block.size_bytes - from);
        return true;
    }
    // Into live blocks alone. What lies in none was freed by the same transaction.
    static bool write(uint64_t address, const std::string &bytes) {
        for (size_t done = 0; done < bytes.size();) {
            ty_block block{};
            auto *at = reinterpret_cast<char *>(address + done);
            if (ty_block_of(at, &block) != TY_OK) {
                done += sizeof(uint64_t) - (address + done) % sizeof(uint64_t);
                continue;
            }
            const auto room = static_cast<size_t>(static_cast<char *>(block.address) + block.size_bytes - at);
            const size_t piece = std::min(room, bytes.size() - done);
            std::memcpy(at, bytes.data() + done, piece);
            done += piece;
        }
        return true;
    }

    ty_heap *heap_;
    repair_report &report_;
    std::vector<change> changes_, held_;
    uint64_t held_count_ = 0, sequence_ = 0;
    bool begun_ = false, waits_ = false, decides_ = false, committed_ = false, calls_ = false, stopped_ = false;
};

void redo_log(ty_heap *heap, const heap_files &files, repair_report &report) {
    redoer redo(heap, report);
    ty_log_info info{};
    info.struct_size = sizeof info;
    const ty_open_options options = files.options();
    if (ty_rescue_log(files.path.c_str(), &options, redoer::take, &redo, &info) != TY_OK) {
        report.log_is_damaged = true;
        note_problem(ty_error_text(), &report);
    }
    redo.end();
    report.in_doubt = redo.in_doubt();
    report.left_out = info.left_out;
}

// ---- What is damaged in it

struct block_walk {
    repair_report &report;
    const char *base;

    // Whether some byte of the stretch lies in a damaged page.
    bool is_damaged(const void *address, size_t size) const {
        const auto offset = static_cast<uint64_t>(static_cast<const char *>(address) - base);
        const auto page = report.pages.lower_bound(offset / page_bytes);
        return page != report.pages.end() && *page <= (offset + size - 1) / page_bytes;
    }
    static bool take(const ty_block *block, void *self) {
        auto &walk = *static_cast<block_walk *>(self);
        ++walk.report.live_blocks;
        if (!walk.is_damaged(block->address, block->size_bytes))
            return true;
        ++walk.report.damaged_block_count;
        walk.report.damaged_block_bytes += block->size_bytes;
        if (walk.report.damaged_blocks.size() < shown_blocks_max)
            walk.report.damaged_blocks.push_back({reinterpret_cast<uintptr_t>(block->address), block->size_bytes});
        return true;
    }
};

ty_status look_for_damage(ty_heap *heap, repair_report &report) {
    const size_t before = report.problems.size();
    const ty_status verified = ty_heap_verify(heap, note_problem, &report);
    if (verified != TY_OK && report.problems.size() == before)
        note_problem(ty_error_text(), &report);
    block_walk walk{report, static_cast<const char *>(ty_heap_base(heap))};
    if (ty_status status = ty_each_block(heap, block_walk::take, &walk))
        return status;
    std::vector<named_root> roots;
    if (ty_status status = roots_of(heap, roots))
        return status;
    for (const named_root &root : roots) {
        const bool lost = root.block.size_bytes == 0 || walk.is_damaged(root.block.address, root.block.size_bytes);
        (lost ? report.lost_roots : report.roots).push_back(root.name);
    }
    return TY_OK;
}

// ---- The new heap

ty_status open_rescued(const std::string &out, ty_heap **heap) {
    const heap_files files{out, "", ""};
    const ty_open_options options = writing_options(files);
    return ty_open(out.c_str(), &options, heap, nullptr);
}

ty_status fill(const heap_files &files, const std::string &out, ty_kind kind, repair_report &report) {
    ty_heap *heap = nullptr;
    if (ty_status status = open_rescued(out, &heap))
        return status;
    if (kind == TY_TRANSACTIONAL)
        redo_log(heap, files, report);
    ty_status status = look_for_damage(heap, report);
    const ty_status closed = ty_close(heap);
    if (closed != TY_OK)
        static_cast<void>(ty_discard(heap));
    status = status != TY_OK ? status : closed;
    if (status != TY_OK || kind == TY_ARCHIVE)
        return status;
    ty_open_options wanted = writing_options({out, "", ""});
    wanted.kind = kind;
    return change_kind({out, "", ""}, TY_ARCHIVE, wanted);
}

bool was_closed(const heap_files &files) {
    const ty_open_options options = files.options();
    ty_info info{};
    info.struct_size = sizeof info;
    return ty_read_info_with(files.path.c_str(), &options, &info) == TY_OK && info.closed;
}

void take_over(const ty_rescue_report &rescued, repair_report &report) {
    report.kind = report.made_kind = kind_name(rescued.kind);
    report.limit_bytes = rescued.limit_bytes;
    report.header_doubtful = rescued.header_doubtful;
    report.image_epoch = rescued.image_epoch;
    report.epoch = rescued.epoch;
    report.durable_epoch = rescued.durable_epoch;
    report.batches = rescued.batches;
    report.damaged_pages = rescued.damaged_pages;
    report.missing_pages = rescued.missing_pages;
    report.unchecked_pages = rescued.unchecked_pages;
}

} // namespace

// CL2.
int repair(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const std::string &out = given.paths[1];
    for (const char *suffix : {"-journal", "-log"})
        if (access((out + suffix).c_str(), F_OK) == 0)
            return refuse(files, given,
                          ty_error_set(TY_E_EXISTS, 0, "repair a heap", (out + suffix).c_str(), UINT64_MAX,
                                       "give the repaired heap another name, or move this file away"));
    repair_report report;
    ty_rescue_report rescued{};
    rescued.struct_size = sizeof rescued;
    const ty_open_options options = files.options();
    if (ty_status status =
            ty_rescue(files.path.c_str(), &options, out.c_str(), note_problem, note_page, &report, &rescued))
        return refuse(files, given, status);
    take_over(rescued, report);
    report.closed = was_closed(files);
    if (ty_status status = fill(files, out, rescued.kind, report)) {
        const int code = refuse(files, given, status);
        for (const std::string &problem : report.problems)
            std::fprintf(stderr, "taiyen: %s\n", text::printable(problem).c_str());
        for (const char *suffix : {"", "-journal", "-log"}) // no heap: it was made here
            unlink((out + suffix).c_str());
        return code;
    }
    print_report(files, out, given.json, report);
    return report.is_whole() ? exit_fine : exit_problems;
}

} // namespace cli
