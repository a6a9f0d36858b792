// taiyen repair: makes another heap from what can be read of a damaged one.
#include "repair/repair.hpp"

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "move/making.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <taiyen/detail/fault.hpp>
#include <taiyen/log.h>
#include <taiyen/salvage.h>
#include <unistd.h>

namespace cli {

namespace {

constexpr size_t shown_blocks_max = 20;
constexpr size_t problems_max = 100;

void note_problem(const char *text, void *context) {
    auto &report = *static_cast<repair_report *>(context);
    const std::string problem = as_options(text);
    if (!report.problems.empty() && report.problems.back() == problem)
        return;
    ++report.problem_count;
    if (report.problems.size() < problems_max)
        report.problems.push_back(problem);
}

// CL6: what `repair` does not list is as it was.
void note_page(uint64_t page, bool, void *context) {
    static_cast<repair_report *>(context)->pages.add(page);
}

// ---- Damage in it

struct block_walk {
    repair_report &report;
    const char *base;

    // Whether any byte of the range lies in a damaged page.
    bool is_damaged(const void *address, size_t size) const {
        const auto offset = static_cast<uint64_t>(static_cast<const char *>(address) - base);
        return report.pages.count_within(offset / page_bytes, (offset + size - 1) / page_bytes + 1) != 0;
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

// The heap's own pages: header, roots, bitmaps of live blocks.
struct table_walk {
    repair_report &report;
    const char *base;

    static bool take(const ty_extent *extent, void *self) {
        auto &walk = *static_cast<table_walk *>(self);
        if (extent->kind != TY_EXTENT_CONTROL)
            return true;
        const uint64_t first =
            static_cast<uint64_t>(static_cast<const char *>(extent->address) - walk.base) / page_bytes;
        walk.report.damaged_tables += walk.report.pages.count_within(first, first + extent->size_bytes / page_bytes);
        return true;
    }
};

// Where the heap's own tables are damaged, only its pages can be salvaged.
ty_status unless_damaged(ty_status status, repair_report &report) {
    if (status != TY_E_DAMAGED)
        return status;
    report.damaged_tables = std::max(report.damaged_tables, uint64_t{1});
    note_problem(ty_error_text(), &report);
    return TY_OK;
}

ty_status look_for_damage(ty_heap *heap, repair_report &report) {
    const uint64_t before = report.problem_count;
    const ty_status verified = ty_heap_verify(heap, note_problem, &report);
    if (verified != TY_OK && report.problem_count == before)
        note_problem(ty_error_text(), &report);
    block_walk walk{report, static_cast<const char *>(ty_heap_base(heap))};
    if (ty_status status = unless_damaged(ty_each_block(heap, block_walk::take, &walk), report))
        return status;
    table_walk tables{report, walk.base};
    if (ty_status status = unless_damaged(ty_each_extent(heap, table_walk::take, &tables), report))
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

constexpr const char *file_suffixes[] = {"-log", "-journal", ""}; // the heap last: once it is there, all are

// Where the heap is made, with its journal and log: a private folder. The files get their final names when all of them
// are complete.
class unfinished_heap {
public:
    explicit unfinished_heap(const std::string &out) : folder_(out + "-unfinished") {}
    unfinished_heap(const unfinished_heap &) = delete;
    unfinished_heap &operator=(const unfinished_heap &) = delete;
    ~unfinished_heap() {
        if (!is_made_)
            return;
        remove_files();
        rmdir(folder_.c_str());
    }
    std::string path() const { return folder_ + "/heap"; }
    ty_status make_folder() {
        is_made_ = mkdir(folder_.c_str(), 0700) == 0;
        if (is_made_)
            return TY_OK;
        const int error = errno;
        struct stat there;
        const bool is_left = error == EEXIST && lstat(folder_.c_str(), &there) == 0 && S_ISDIR(there.st_mode);
        return ty_error_set(error == EEXIST ? TY_E_EXISTS : TY_E_IO, error, "make a folder to repair a heap in",
                            folder_.c_str(), UINT64_MAX,
                            is_left ? "another repair is at work there, or one that was ended has left it: remove it "
                                      "then, or give the repaired heap another name"
                                    : "give the repaired heap another name");
    }
    void remove_files() const {
        for (const char *suffix : file_suffixes)
            unlink((path() + suffix).c_str());
    }

private:
    const std::string folder_;
    bool is_made_ = false;
};

// In order: salvages the pages, restores the kind, redoes the transactions.
class maker {
public:
    maker(const heap_files &files, const unfinished_heap &heap, repair_report &report)
        : files_(files), heap_(heap), made_{heap.path(), "", ""}, report_(report), options_(files.options()) {}

    ty_status run() {
        if (ty_status status = salvage(note_problem, &salvaged_))
            return status;
        take_over(salvaged_);
        if (salvaged_.kind == TY_TRANSACTIONAL)
            if (ty_status status = redo_log())
                return status;
        if (ty_status status = look())
            return status;
        return salvaged_.kind == TY_SNAPSHOT ? become(TY_SNAPSHOT) : TY_OK;
    }

private:
    ty_status salvage(ty_problem_callback *problem, ty_salvage_report *salvaged) {
        *salvaged = {};
        salvaged->struct_size = sizeof *salvaged;
        return ty_salvage(files_.path.c_str(), &options_, made_.path.c_str(), problem, note_page, &report_, salvaged);
    }
    // CL6: the heap must be what was listed.
    ty_status salvage_again() {
        ty_salvage_report again;
        if (ty_status status = salvage(nullptr, &again))
            return status;
        if (again.state == salvaged_.state && again.problems == salvaged_.problems &&
            again.damaged_pages == salvaged_.damaged_pages && again.missing_pages == salvaged_.missing_pages)
            return TY_OK;
        return ty_error_set(TY_E_BUSY, 0, "go on with a damaged heap: its files are not as they were first read",
                            files_.path.c_str(), UINT64_MAX, "let no program use them, and begin again");
    }
    void take_over(const ty_salvage_report &salvaged) {
        report_.kind = kind_name(salvaged.kind);
        report_.made_kind = kind_name(TY_ARCHIVE);
        report_.limit_bytes = salvaged.limit_bytes;
        report_.header_doubtful = salvaged.header_doubtful;
        report_.image_epoch = salvaged.image_epoch;
        report_.epoch = salvaged.epoch;
        report_.durable_epoch = salvaged.durable_epoch;
        report_.batches = salvaged.batches;
        report_.damaged_pages = salvaged.damaged_pages;
        report_.missing_pages = salvaged.missing_pages;
        report_.unchecked_pages = salvaged.unchecked_pages;
        report_.closed = salvaged.closed;
        report_.several_moments = salvaged.several_moments;
        report_.later_pages = salvaged.later_pages;
    }
    // If damage prevents it, the heap stays an archive heap; unless only the close failed.
    ty_status become(ty_kind kind) {
        ty_open_options wanted = writing_options(made_);
        wanted.kind = kind;
        if (kind == TY_TRANSACTIONAL)
            take_log_size(wanted);
        const ty_status status = change_kind(made_, TY_ARCHIVE, wanted);
        if (ty_status failed = unless_damaged(status, report_))
            return failed;
        const ty_open_options options = made_.options();
        ty_info info{};
        info.struct_size = sizeof info;
        if (ty_status failed = ty_read_info(made_.path.c_str(), &options, &info))
            return failed;
        report_.made_kind = kind_name(info.kind);
        return TY_OK;
    }
    // Takes the log's size from the damaged heap's log, if it is plausible.
    void take_log_size(ty_open_options &wanted) const {
        const std::string path = files_.log_path.empty() ? files_.path + "-log" : files_.log_path;
        ty_log_info info{};
        info.struct_size = sizeof info;
        struct stat there;
        ty_open_options log = TY_OPEN_OPTIONS_INIT;
        log.log_path = path.c_str();
        if (ty_log_read(nullptr, &log, &info, nullptr, nullptr) != TY_OK || stat(path.c_str(), &there) != 0 ||
            info.size_bytes > static_cast<uint64_t>(there.st_size))
            return;
        wanted.log_bytes = (info.size_bytes / TY_LOG_BYTES_MIN + 1) * TY_LOG_BYTES_MIN; // and the log's other parts
        wanted.log_streams = info.streams;
    }
    // A transaction that does not fit what the damage left may be done in part: then the heap is rebuilt, up to the
    // transaction before it.
    ty_status redo_log() {
        uint64_t until = UINT64_MAX;
        for (;;) {
            if (ty_status status = become(TY_TRANSACTIONAL))
                return status;
            if (report_.made_kind != kind_name(TY_TRANSACTIONAL))
                return TY_OK;
            ty_salvage_redone redone{};
            const ty_status status = redo_until(until, &redone);
            if (status == TY_OK)
                return take_over(redone);
            if (status != TY_E_DAMAGED || redone.stopped_at == 0 || redone.stopped_at > until)
                return status;
            note_problem(ty_error_text(), &report_);
            until = redone.stopped_at - 1;
            report_.made_kind = kind_name(TY_ARCHIVE);
            heap_.remove_files();
            if (ty_status again = salvage_again())
                return again;
        }
    }
    ty_status redo_until(uint64_t until, ty_salvage_redone *redone) {
        ty_heap *heap = nullptr;
        redone->struct_size = sizeof *redone;
        if (ty_status status = open(&heap))
            return status;
        const ty_status status = ty_salvage_redo(heap, files_.path.c_str(), &options_, &salvaged_, until, redone);
        return close(heap, status);
    }
    ty_status take_over(const ty_salvage_redone &redone) {
        report_.transactions = redone.transactions;
        report_.first_unapplied = redone.stopped_at;
        report_.in_doubt = redone.in_doubt;
        report_.left_out = redone.left_out;
        report_.log_is_damaged = redone.log_damaged;
        if (redone.text[0] != 0)
            note_problem(redone.text, &report_);
        return TY_OK;
    }
    // In a copy: opening an archive heap for writing would allocate disk space for all used pages, written or not.
    ty_status look() {
        const ty_open_options options = made_.options();
        ty_heap *heap = nullptr;
        if (ty_status status = ty_open(made_.path.c_str(), &options, &heap, nullptr))
            return status;
        return close(heap, look_for_damage(heap, report_));
    }
    ty_status open(ty_heap **heap) const {
        const ty_open_options options = writing_options(made_);
        return ty_open(made_.path.c_str(), &options, heap, nullptr);
    }
    // The first failure counts, and its text stays.
    static ty_status close(ty_heap *heap, ty_status status) {
        if (status == TY_OK && (status = ty_close(heap)) == TY_OK)
            return TY_OK;
        ty_error why;
        ty_error_detail(&why);
        static_cast<void>(ty_discard(heap));
        return ty_error_set(why.status, why.system_error, why.operation, why.path, why.offset, why.remedy);
    }

    const heap_files &files_;
    const unfinished_heap &heap_;
    const heap_files made_;
    repair_report &report_;
    const ty_open_options options_;
    ty_salvage_report salvaged_{};
};

ty_status check_names(const std::string &out) {
    for (const char *suffix : file_suffixes) {
        struct stat there;
        if (lstat((out + suffix).c_str(), &there) == 0) // also a link that leads nowhere
            return ty_error_set(TY_E_EXISTS, 0, "repair a heap", (out + suffix).c_str(), UINT64_MAX,
                                "give the repaired heap another name, or move this file away");
    }
    return TY_OK;
}

// Replaces nothing, also if somebody creates it meanwhile.
ty_status give_name(const std::string &made, const std::string &out) {
    const unsigned how = taiyen::detail::fault("repair_replaces_another_file") ? 0 : RENAME_NOREPLACE;
    int error = renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, out.c_str(), how) ? errno : 0;
    if (error == EINVAL) // not every file system supports it
        error = access(out.c_str(), F_OK) == 0 ? EEXIST : rename(made.c_str(), out.c_str()) ? errno : 0;
    if (error == 0)
        return TY_OK;
    return ty_error_set(error == EEXIST ? TY_E_EXISTS : TY_E_IO, error, "give the repaired heap its name", out.c_str(),
                        UINT64_MAX, "give another name");
}

// All or none: if one file cannot get its name, those that have theirs are removed.
ty_status give_names(const unfinished_heap &heap, const std::string &out) {
    std::vector<std::string> given;
    for (const char *suffix : file_suffixes) {
        const std::string made = heap.path() + suffix;
        if (*suffix && access(made.c_str(), F_OK)) // not every kind of heap has each file
            continue;
        if (ty_status status = give_name(made, out + suffix)) {
            for (const std::string &each : given)
                unlink(each.c_str());
            return status;
        }
        given.push_back(out + suffix);
    }
    const ty_storage &files = *ty_storage_default();
    return files.flush_directory(files.context, out.c_str());
}

} // namespace

void page_stretches::add(uint64_t page) {
    auto next = stretches_.upper_bound(page);
    if (next != stretches_.begin()) {
        const auto before = std::prev(next);
        if (page < before->second)
            return;
        if (page == before->second) {
            ++size_;
            if (++before->second != (next == stretches_.end() ? UINT64_MAX : next->first))
                return;
            before->second = next->second;
            stretches_.erase(next);
            return;
        }
    }
    ++size_;
    if (next != stretches_.end() && next->first == page + 1) {
        stretches_[page] = next->second;
        stretches_.erase(next);
    } else {
        stretches_[page] = page + 1;
    }
}

uint64_t page_stretches::count_within(uint64_t first, uint64_t end) const {
    auto stretch = stretches_.upper_bound(first);
    if (stretch != stretches_.begin() && std::prev(stretch)->second > first)
        --stretch;
    uint64_t count = 0;
    for (; stretch != stretches_.end() && stretch->first < end; ++stretch)
        count += std::min(end, stretch->second) - std::max(first, stretch->first);
    return count;
}

// CL2: what a command makes is there completely, or nothing of it.
int repair(const request &given) {
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const std::string &out = given.paths[1];
    repair_report report;
    unfinished_heap heap(out);
    ty_status status = check_names(out);
    if (status == TY_OK)
        status = heap.make_folder();
    if (status == TY_OK)
        status = maker(files, heap, report).run();
    if (status == TY_OK)
        status = give_names(heap, out);
    if (status != TY_OK) {
        static_cast<void>(refuse(files, given, status));
        for (const std::string &problem : report.problems)
            std::fprintf(stderr, "taiyen: %s\n", text::printable(problem).c_str());
        return exit_cannot;
    }
    print_report(files, out, given.json, report);
    return report.is_whole() ? exit_fine : exit_problems;
}

} // namespace cli
