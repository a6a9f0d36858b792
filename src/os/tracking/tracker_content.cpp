// Dirty pages by content, for kernels without write tracking of their own.
//
// In a private mapping a write to a page, also by the kernel, makes a copy of it, and /proc/self/pagemap says which
// pages are copies. A copy is dirty if its checksum differs from that at the last collect. Nothing is protected and
// nothing faults.
//
// Kernels with soft-dirty bits (marks) also say which copies were written since all marks of the process were cleared;
// then only those are checked. Others may clear the marks, too: another heap's tracker, or an external tool. The
// witness page detects that: it is written after each clearing of ours. While it has its mark, no other clearing has
// happened.
//
// V1: a page's checksum is that of its content when it was reported last, or at the start; 0: it was not a copy then.
//
// A copy is taken for unwritten without a check only if it has no mark, and the witness has its own after all marks of
// the range were read. Marks are cleared while no thread writes to the range, between reading them and the end of the
// collect.
#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "../process/process.hpp"
#include "tracker_methods.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen::os::content_tracker {

struct range {
    char *base;
    uint64_t page_count;
    uint64_t seed;
    int pagemap;
    off_t pagemap_mark; // N2: proves that the number still leads to pagemap
    uint64_t *sums;
    bool kept_by_kernel; // the kernel has soft-dirty marks
    bool marked;         // the last collect cleared the marks
    unsigned wait;       // number of collects until the marks are used again
    void *witness_place;
    std::atomic<uint64_t> *witness;
};

namespace {

constexpr size_t witness_bytes = 3 * page_bytes;

constexpr size_t entries_a_read = 512;
constexpr unsigned collections_to_wait = 16;
constexpr uint64_t resident_share = 4;
std::atomic<uint64_t> marks_from{4096}; // copies; for fewer, checksums take less time than clearing marks

size_t sums_bytes(uint64_t page_count) {
    return (page_count * sizeof(uint64_t) + page_bytes - 1) & ~(page_bytes - 1);
}

ty_status unreadable(int error) {
    return failure(status_of_errno(error), "find the written pages of the heap in /proc/self/pagemap")
        .cause(error)
        .remedy("nothing is lost: try again");
}

// The checksum of a tracked page. A query may race with writes: ThreadSanitizer must ignore that.
[[gnu::no_sanitize_thread]] uint64_t sum_of(const range &tracked, uint64_t page) {
    const char *content = tracked.base + page * page_bytes;
#if defined(__SANITIZE_THREAD__)
    uint64_t copy[page_bytes / sizeof(uint64_t)];
    for (size_t i = 0; i < page_bytes / sizeof(uint64_t); i++)
        copy[i] = reinterpret_cast<const volatile uint64_t *>(content)[i];
    return checksum(copy, page_bytes, tracked.seed);
#else
    return checksum(content, page_bytes, tracked.seed);
#endif
}

// Reads all pagemap entries of these pages. False: errno says why.
bool read_entries(int pagemap, const void *address, uint64_t *entries, uint64_t count) {
    uint64_t first = reinterpret_cast<uintptr_t>(address) / page_bytes;
    for (uint64_t done = 0; done < count;) {
        ssize_t got =
            sys::pread(pagemap, entries + done, (count - done) * sizeof *entries, (first + done) * sizeof *entries);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < static_cast<ssize_t>(sizeof *entries)) {
            errno = got < 0 ? errno : EIO;
            return false;
        }
        done += static_cast<uint64_t>(got) / sizeof *entries;
    }
    return true;
}

bool is_copy(uint64_t entry) {
    return entry & (kernel::pagemap_present | kernel::pagemap_swapped) && !(entry & kernel::pagemap_file);
}

// Calls visit(page, entry) for each copy among the pages, until it returns false.
template <typename Visit>
ty_status each_copy(const range &tracked, page_range pages, Visit visit) {
    uint64_t entries[entries_a_read];
    for (uint64_t page = pages.first, end = pages.first + pages.count; page < end;) {
        uint64_t count = end - page < entries_a_read ? end - page : entries_a_read;
        if (!read_entries(tracked.pagemap, tracked.base + page * page_bytes, entries, count))
            return unreadable(errno);
        for (uint64_t i = 0; i < count; i++)
            if (is_copy(entries[i]) && !visit(page + i, entries[i]))
                return TY_OK;
        page += count;
    }
    return TY_OK;
}

bool open_pagemap(range &tracked) {
    int pagemap = open_descriptor("/proc/self/pagemap", O_RDONLY);
    off_t mark = pagemap < 0 ? 0 : mark_descriptor(pagemap);
    int error = errno;
    if (mark != 0) {
        tracked.pagemap = pagemap;
        tracked.pagemap_mark = mark;
    } else if (pagemap >= 0) {
        sys::close(pagemap);
    }
    errno = error;
    return mark != 0;
}

ty_status refused() {
    int error = errno;
    bool passing = error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
    return failure(passing ? status_of_errno(error) : TY_E_UNSUPPORTED,
                   "track written pages by their content: /proc/self/pagemap cannot be read")
        .cause(error)
        .remedy("%s",
                passing ? "close files or free memory, and try again" : "allow /proc; the signal method does without");
}

// N2: the start's descriptor, or a new one if the program has closed it.
ty_status check_descriptor(range &tracked) {
    if (is_marked(tracked.pagemap, tracked.pagemap_mark) || open_pagemap(tracked))
        return TY_OK;
    return unreadable(errno);
}

// The kernel reads the marks, here as everywhere, only when no clearing of them is under way.
bool witness_has_mark(const range &tracked) {
    uint64_t entry;
    return read_entries(tracked.pagemap, tracked.witness, &entry, 1) && entry & kernel::pagemap_soft_dirty;
}

enum class then { keep, look }; // keep: store the checksums of what is found (V1)

struct found_copies {
    uint64_t count = 0;
    uint64_t looked_at = 0;
};

ty_status find_changed(range &tracked, page_ranges where, bool by_marks, then what, page_set &into,
                       found_copies *found) {
    for (size_t i = 0; i < where.count; i++) {
        ty_status status = each_copy(tracked, where.ranges[i], [&](uint64_t page, uint64_t entry) {
            found->count++;
            uint64_t &kept = tracked.sums[page];
            if (by_marks && !(entry & kernel::pagemap_soft_dirty) && kept != 0)
                return true;
            uint64_t sum = sum_of(tracked, page);
            if (sum == kept)
                return true;
            into.insert(page);
            if (what == then::keep || (what == then::look && fault("query_counts_as_reported")))
                kept = sum;
            return true;
        });
        if (status)
            return status;
    }
    return TY_OK;
}

ty_status find(range &tracked, page_ranges where, then what, page_set &into, found_copies *found) {
    if (ty_status status = check_descriptor(tracked))
        return status;
    bool by_marks = tracked.marked && witness_has_mark(tracked);
    if (ty_status status = find_changed(tracked, where, by_marks, what, into, found))
        return status;
    if (!tracked.marked || (by_marks && witness_has_mark(tracked))) // no other clearing before that
        return TY_OK;
    // Others clear the marks, too: stop using them for a while.
    tracked.marked = false;
    tracked.wait = collections_to_wait;
    *found = {};
    return by_marks ? find_changed(tracked, where, false, what, into, found) : TY_OK;
}

// Clearing walks all memory of the process, and each page's next write costs a fault. So the heap must be a large part
// of it.
bool clearing_pays(uint64_t copies) {
    char text[128];
    if (copies < marks_from.load(std::memory_order_relaxed) || !read_text("/proc/self/statm", text, sizeof text))
        return false;
    const char *resident = strchr(text, ' ');
    return resident && copies >= strtoull(resident, nullptr, 10) / resident_share;
}

void clear_marks(range &tracked) {
    int file = open_descriptor("/proc/self/clear_refs", O_WRONLY);
    if (file < 0)
        return;
    bool cleared = sys::pwrite(file, "4", 1, 0) == 1;
    sys::close(file);
    if (!cleared)
        return;
    tracked.witness->fetch_add(1, std::memory_order_relaxed);
    tracked.marked = witness_has_mark(tracked); // and each clearing that began before it was written is over
}

// Before 5.11 the kernel did not always flush writable TLB entries when it cleared marks.
bool kernel_clears_safely() {
    char text[64];
    if (!read_text("/proc/sys/kernel/osrelease", text, sizeof text))
        return false;
    char *rest;
    unsigned long major = strtoul(text, &rest, 10);
    unsigned long minor = *rest == '.' ? strtoul(rest + 1, nullptr, 10) : 0;
    return major > 5 || (major == 5 && minor >= 11);
}

// Between two inaccessible pages: when a mapping merges with another, all of it counts as written.
ty_status make_witness(range &tracked) {
    if (ty_status status = reserve(0, witness_bytes, page_bytes, &tracked.witness_place))
        return status;
    char *witness = static_cast<char *>(tracked.witness_place) + page_bytes;
    if (ty_status status = commit(witness, page_bytes))
        return status;
    tracked.witness = new (witness) std::atomic<uint64_t>{1};
    // New memory counts as written, if there are marks.
    tracked.kept_by_kernel = witness_has_mark(tracked) && kernel_clears_safely();
    return TY_OK;
}

ty_status prepare(range &tracked, page_ranges where) {
    void *memory;
    if (!open_pagemap(tracked))
        return refused();
    if (ty_status status = make_witness(tracked))
        return status;
    if (ty_status status = map_memory(sums_bytes(tracked.page_count), memory_hint::none, &memory))
        return status;
    tracked.sums = static_cast<uint64_t *>(memory);
    // A huge page is 512 copies from its first write on. Merging of equal pages (KSM) removes their marks.
    sys::madvise(tracked.base, tracked.page_count * page_bytes, MADV_NOHUGEPAGE);
    sys::madvise(tracked.base, tracked.page_count * page_bytes, MADV_UNMERGEABLE);
    for (size_t i = 0; i < where.count; i++) {
        ty_status status = each_copy(tracked, where.ranges[i], [&](uint64_t page, uint64_t) {
            tracked.sums[page] = sum_of(tracked, page);
            return true;
        });
        if (status)
            return status;
    }
    return TY_OK;
}

} // namespace

ty_status start(char *base, uint64_t page_count, page_ranges where, range **made) {
    void *memory;
    if (ty_status status = map_memory(page_bytes, memory_hint::none, &memory))
        return status;
    range *tracked = new (memory) range{};
    tracked->base = base;
    tracked->page_count = page_count;
    tracked->pagemap = -1;
    random_bytes(&tracked->seed, sizeof tracked->seed);
    if (ty_status status = prepare(*tracked, where)) {
        stop(tracked);
        return status;
    }
    *made = tracked;
    return TY_OK;
}

void stop(range *tracked) {
    if (tracked->pagemap >= 0 && is_marked(tracked->pagemap, tracked->pagemap_mark))
        sys::close(tracked->pagemap);
    if (tracked->sums)
        unmap_memory(tracked->sums, sums_bytes(tracked->page_count));
    if (tracked->witness_place)
        static_cast<void>(release(tracked->witness_place, witness_bytes));
    unmap_memory(tracked, page_bytes);
}

ty_status collect(range *tracked, page_ranges where, page_set &into) {
    found_copies found;
    if (ty_status status = find(*tracked, where, then::keep, into, &found))
        return status;
    tracked->marked = false;
    if (tracked->wait > 0)
        tracked->wait--;
    else if (tracked->kept_by_kernel && clearing_pays(found.count))
        clear_marks(*tracked);
    return TY_OK;
}

ty_status query(range *tracked, page_ranges where, page_set &into) {
    found_copies found;
    return find(*tracked, where, then::look, into, &found);
}

ty_status find_unwritten_copies(range *tracked, page_range pages, uint64_t *list, size_t capacity, size_t *found,
                                uint64_t *next) {
    if (ty_status status = check_descriptor(*tracked))
        return status;
    return each_copy(*tracked, pages, [&](uint64_t page, uint64_t) {
        if (*found == capacity) {
            *next = page;
            return false;
        }
        if (tracked->sums[page] != 0 && sum_of(*tracked, page) == tracked->sums[page])
            list[(*found)++] = page;
        return true;
    });
}

bool has_marks(const range *tracked) {
    return tracked->marked;
}

void set_marks_from(uint64_t copies) {
    marks_from.store(copies, std::memory_order_relaxed);
}

} // namespace taiyen::os::content_tracker
