// Followers: a heap that is open for reading while another process writes to it. The image is mapped, privately, and
// what a follower shows beyond it are private copies; so a page costs memory only once it has changed.
//
// I28: the memory is one epoch, and stays so; TY_E_EXPIRED reports what may have ended that.
#include "follow.hpp"
#include "open_steps.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace taiyen {
namespace {

constexpr unsigned tries_max = 12;
constexpr uint64_t first_pause_ns = 500'000; // doubled each time

ty_status changed_too_much(const image &im, const char *what) {
    return failure(TY_E_MISMATCH, "refresh a heap: %s", what).at(im.image_path).remedy("close it, and open it again");
}

// What another open may have changed is followed, or refused.
ty_status check_same(const image &im, const image_header &now) {
    const image_header &seen = im.followed.seen;
    if (memcmp(now.identity, im.identity, sizeof now.identity) != 0)
        return changed_too_much(im, "another one is in its place");
    if (now.kind != seen.kind)
        return changed_too_much(im, "it has become one of another kind");
    if (now.limit_bytes != seen.limit_bytes || now.base != seen.base)
        return changed_too_much(im, "its limit was raised");
    return follow_check(im, now);
}

ty_status protect_pages(const image &im, const os::page_set &pages, bool writable) {
    ty_status status = TY_OK;
    for (uint64_t first = pages.next(0), end; first < pages.page_count() && !status; first = pages.next(end)) {
        for (end = first + 1; end < pages.page_count() && pages.contains(end); ++end) {
        }
        status = os::protect(im.base + first * page_bytes, (end - first) * page_bytes, writable);
    }
    return status;
}

// I28. Makes memory writable: these pages alone, if they are few. For all, the kernel changes an entry for each page
// that is mapped, 10 ms for a gigabyte.
ty_status begin_writes(image &im, const os::page_set *pages) {
    im.followed.written = nullptr;
    if (im.shares)
        return TY_OK;
    if (pages != nullptr && pages->count() * follower_page_cost <= heap_used_bytes(im.heap) / page_bytes) {
        im.followed.written = pages;
        if (protect_pages(im, *pages, true) == TY_OK)
            return TY_OK;
        im.followed.written = nullptr; // the process has too many mappings
    }
    return os::protect(im.base, im.mapped_bytes, true);
}

void end_writes(image &im) {
    if (im.shares || fault("follower_stays_writable"))
        return;
    const os::page_set *pages = std::exchange(im.followed.written, nullptr);
    if (pages == nullptr || protect_pages(im, *pages, false))
        (void)os::protect(im.base, im.mapped_bytes, false);
}

struct writable_memory {
    explicit writable_memory(image &of, const os::page_set *pages = nullptr)
        : im(of), status(begin_writes(of, pages)) {}
    ~writable_memory() { end_writes(im); }
    writable_memory(const writable_memory &) = delete;
    writable_memory &operator=(const writable_memory &) = delete;

    image &im;
    const ty_status status;
};

ty_status copy_page_in(void *context, const page_copy *copies, size_t count, const char *bytes) {
    image &im = *static_cast<image *>(context);
    for (size_t i = 0; i < count; ++i) {
        memcpy(im.base + copies[i].page * page_bytes, bytes + i * page_bytes, page_bytes);
        im.followed.copied.insert(copies[i].page);
    }
    return TY_OK;
}

// The newest of these batches is durable: the writer has said so, or the journal was flushed since it was read.
ty_status make_durable(const image &im, const batch_list &batches) {
    if (batches.last == nullptr || batches.last->epoch <= im.followed.durable_epoch || fault("followed_unflushed"))
        return TY_OK;
    return im.journal.flush();
}

// The writer has overwritten what this one held.
ty_status is_expired(const image &im, followers_block *block, bool *expired) {
    if (ty_status status = read_followers_block(im.backing, im.identity, block))
        return status;
    *expired = block->overwritten > im.followed.held && !fault("expired_follower_goes_on");
    return TY_OK;
}

ty_status stand_at(image &im, uint64_t epoch) {
    if (ty_status status = hold_epoch(im.backing, epoch, im.followed.held))
        return status;
    im.followed.held = epoch;
    return TY_OK;
}

// With the memory as at this epoch, however long that took.
ty_status stand_in_time(image &im, uint64_t epoch) {
    followers_block block;
    bool expired = false;
    if (ty_status status = stand_at(im, epoch))
        return status;
    if (ty_status status = is_expired(im, &block, &expired); status || !expired)
        return status;
    return failure(TY_E_BUSY, "follow a heap: its writer does not wait").at(im.image_path).remedy("try again");
}

// Finds the batches that were completed since.
ty_status read_ahead(image &im) {
    following &f = im.followed;
    if (!im.journal.is_open())
        return TY_OK;
    for (unsigned tries = 0;; ++tries) {
        bool more = false;
        if (ty_status status = journal_goes_on(im.journal, im.identity, f.end, &more); status || !more)
            return status;
        journal_scan scan;
        const ty_status status = scan_journal(im.journal, im.identity, f.end, 0, im.mapped_bytes / page_bytes, &scan);
        const batch *newest = scan.batches.last;
        if (newest != nullptr) { // also where more seems to be damaged: what is complete is right
            f.end = {newest->epoch, newest->nonce, newest->end};
            f.newest_lsn = newest->redo_point.lsn;
        }
        while (batch *b = scan.batches.first) {
            scan.batches.first = b->next;
            b->next = nullptr;
            f.ahead.append(b);
        }
        if (!status || newest != nullptr || tries == tries_max || !may_pass(status))
            return newest != nullptr ? TY_OK : status;
    }
}

// Whether many private copies have become equal to what the image has. A heap with a log has others, too.
bool has_superfluous_copies(image &im) {
    following &f = im.followed;
    os::lock_guard guard(im.work);
    while (im.waiting.first != nullptr && im.waiting.first->epoch <= f.image_epoch)
        im.waiting.pop();
    return im.kind == TY_SNAPSHOT && f.copied.count() >= follower_copies_min + 2 * im.waiting.pages();
}

// While none is ahead that the thread has made for what is to come.
void drop_copies(image &im) {
    following &f = im.followed;
    os::page_set keep;
    if (keep.create(f.copied.page_count()))
        return; // they stay
    for (const batch *b = im.waiting.first; b != nullptr; b = b->next)
        for (size_t i = 0; i < b->copies.count(); ++i)
            keep.insert(b->copies[i].page);
    for (uint64_t page = f.copied.next(0); page < f.copied.page_count(); page = f.copied.next(page + 1))
        if (!keep.contains(page) || fault("copies_dropped_that_the_image_lacks")) {
            (void)os::decommit(im.base + page * page_bytes, page_bytes);
            f.copied.erase(page);
        }
    keep.destroy();
}

void note_header(following &f, const image_header &now, const followers_block &block) {
    f.image_epoch = now.epoch;
    f.journal_next = now.journal_next;
    f.durable_epoch = std::max(now.durable_epoch, block.announced);
}

class batch_pages {
public:
    batch_pages(const image &im, const batch_list &batches)
        : known_(pages_.create(im.mapped_bytes / page_bytes) == TY_OK) {
        for (const batch *b = known_ ? batches.first : nullptr; b != nullptr; b = b->next)
            for (size_t i = 0; i < b->copies.count(); ++i)
                pages_.insert(b->copies[i].page);
    }
    ~batch_pages() { pages_.destroy(); }
    batch_pages(const batch_pages &) = delete;
    batch_pages &operator=(const batch_pages &) = delete;
    const os::page_set *known() const { return known_ ? &pages_ : nullptr; }

private:
    os::page_set pages_;
    const bool known_;
};

// Makes private copies of what the writer has announced.
ty_status keep_up(image &im, const followers_block &wanted) {
    following &f = im.followed;
    if (wanted.announced <= f.held)
        return TY_OK;
    if (ty_status status = read_ahead(im))
        return status;
    const batch_pages ahead(im, f.ahead);
    const writable_memory writable(im, ahead.known());
    if (writable.status)
        return writable.status;
    uint64_t epoch = f.held;
    for (const batch *b = f.ahead.first; b != nullptr && b->epoch <= wanted.announced; b = b->next) {
        for (size_t i = 0; i < b->copies.count() && !fault("copies_not_made_before_they_are_lost"); ++i) {
            os::store_what_is_there(im.base + b->copies[i].page * page_bytes); // a copy of its own
            f.copied.insert(b->copies[i].page);
        }
        epoch = b->epoch;
    }
    // The process may have been stopped meanwhile. Asked before it stands elsewhere, where it would look as if it had
    // been in time.
    followers_block block;
    bool expired = false;
    if (ty_status status = is_expired(im, &block, &expired))
        return status;
    if (expired && !fault("copies_made_too_late_count")) {
        f.lost = true;
        return TY_OK;
    }
    if (epoch == f.held)
        return TY_OK;
    if (ty_status status = stand_at(im, epoch))
        return status;
    while (im.kind == TY_TRANSACTIONAL && f.ahead.first != nullptr && f.ahead.first->epoch <= f.held)
        f.ahead.pop();
    return TY_OK;
}

} // namespace

ty_status follow_check(const image &im, const image_header &header) {
    if (!has_journal(ty_kind(header.kind)))
        return failure(TY_E_UNSUPPORTED, "follow an archive heap")
            .at(im.image_path)
            .remedy("only snapshot heaps and transactional heaps can be followed: open it for writing as one of these");
    if (!im.backing.can_be_held())
        return failure(TY_E_UNSUPPORTED, "follow a heap: its storage cannot hold numbers (ty_storage.hold)")
            .at(im.image_path)
            .remedy("open it with TY_OPEN_COPY");
    if (header.holds == holds_heeded)
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "follow a heap that a library of another version wrote to last")
        .at(im.image_path)
        .remedy("open it for writing with this version once, or open a copy (TY_OPEN_COPY)");
}

// The order matters (I27): what the header says is held before the writer may go on. A writer may have overwritten
// pages beyond that, and gone without followers, or died: they are in batches that are in the journal.
ty_status follow_stand(image &im, image_header *header) {
    bool repaired = false;
    followers_block block;
    if (ty_status status = holds_begin(im.backing))
        return status;
    ty_status status = read_header(im.backing, header, &repaired);
    if (!status)
        status = hold_epoch(im.backing, header->epoch, im.followed.held);
    holds_end(im.backing);
    if (status)
        return status;
    im.followed.held = header->epoch;
    if (im.heap == nullptr) // later it is known, and read by other threads
        memcpy(im.identity, header->identity, sizeof im.identity);
    if ((status = read_followers_block(im.backing, im.identity, &block)))
        return status;
    note_header(im.followed, *header, block);
    return TY_OK;
}

ty_status follow_start(image &im) {
    following &f = im.followed;
    f.seen = im.header.current;
    f.shown = im.durable_epoch;
    f.end = {im.durable_epoch, im.durable_nonce, im.journal_end};
    f.newest_lsn = im.durable_redo_point.lsn;
    if (ty_status status = f.copied.create(im.mapped_bytes / page_bytes))
        return status;
    if (ty_status status = im.shares ? im.backing.map_anywhere(page_bytes, followers_offset, 0, &f.block) : TY_OK)
        return status;
    if (ty_status status = make_durable(im, im.waiting))
        return status;
    for (const batch *b = im.waiting.first; b != nullptr; b = b->next)
        for (size_t i = 0; i < b->copies.count(); ++i)
            f.copied.insert(b->copies[i].page);
    return stand_in_time(im, f.shown);
}

void follow_stop(image &im) {
    if (im.followed.block != nullptr)
        (void)im.backing.unmap(im.followed.block, page_bytes);
    im.followed.ahead.clear();
    im.waiting.clear();
    im.followed.copied.destroy();
}

ty_status image_follow_is_expired(ty_heap *heap, bool *expired) {
    const image &im = *image_of(heap);
    followers_block block;
    if (ty_status status = is_expired(im, &block, expired))
        return status;
    *expired = *expired || im.followed.lost;
    return TY_OK;
}

void image_follow_loaded(ty_heap *heap, image_log *log) {
    const image &im = *image_of(heap);
    *log = log_with(im, im.waiting);
}

void image_follow_lose(ty_heap *heap) {
    image_of(heap)->followed.lost = true;
}

// The word is whole, whenever it is read: it lies in one sector. Its page is the system's, as those of the image are.
bool image_follow_is_lost(ty_heap *heap) {
    const image &im = *image_of(heap);
    const auto *block = static_cast<const followers_block *>(im.followed.block);
    if (im.followed.lost || block == nullptr)
        return im.followed.lost;
    const volatile uint64_t &overwritten = block->overwritten;
    return overwritten > im.followed.held && memcmp(block->heap_identity, im.identity, sizeof im.identity) == 0;
}

void memory_of_image::run(void *context) {
    auto &self = *static_cast<memory_of_image *>(context);
    self.status = os::decommit(self.im.base, self.im.mapped_bytes);
    for (const batch *b = self.batches.first; b != nullptr && self.status == TY_OK; b = b->next)
        self.status = read_batch(self.im.journal, *b, {&self.im, self.copy});
}

void follow_leave(image &im) {
    uint64_t other = 0;
    (void)im.backing.hold(TY_HOLD_NONE, 0, (uint64_t{1} << 62) - 1, &other);
}

ty_status image_follow_look(ty_heap *heap, follow_look *look) {
    image &im = *image_of(heap);
    following &f = im.followed;
    *look = {};
    if (ty_status status = check_process(im, "refresh a heap"))
        return status;
    if (im.backing.check())
        return changed_too_much(im, "its file was removed, or replaced");
    image_header now;
    followers_block block;
    bool repaired = false;
    ty_status status = read_header(im.backing, &now, &repaired);
    if (!status)
        status = check_same(im, now);
    if (!status)
        status = is_expired(im, &block, &look->expired);
    if (status)
        return status;
    look->expired = look->expired || f.lost;
    // An open after a crash writes the batches again, elsewhere, before it has a name of its own.
    const bool moved = now.epoch == f.image_epoch && now.journal_next != f.journal_next;
    look->reopened = look->expired || moved || !(now.open == f.seen.open) || now.log_identity != f.seen.log_identity;
    note_header(f, now, block);
    if (!look->reopened && (status = read_ahead(im)))
        return status;
    look->reopened = look->reopened || now.epoch > f.end.epoch;
    look->newer = f.end.epoch > f.shown;
    look->superfluous = has_superfluous_copies(im);
    look->lsn = f.newest_lsn;
    const bool brought = look->newer && im.kind == TY_SNAPSHOT;    // to what is newest, by the refresh
    return look->reopened || brought ? TY_OK : keep_up(im, block); // the thread may not come to it
}

ty_status image_follow_keep_up(ty_heap *heap) {
    image &im = *image_of(heap);
    followers_block block;
    bool expired = false;
    const ty_status status = is_expired(im, &block, &expired);
    return status || expired ? status : keep_up(im, block);
}

namespace {

// What is ahead is in the journal, but for batches that the image has: those that this one stood behind.
ty_status bring(image &im) {
    following &f = im.followed;
    image_header header;
    if (f.held > f.shown) {
        if (ty_status status = follow_stand(im, &header))
            return status;
        if (header.epoch > f.end.epoch || !(header.open == f.seen.open)) // it has gone past what is known
            return failure(TY_E_BUSY, "refresh a heap: its writer has gone on").at(im.image_path).remedy("try again");
    }
    const batch *b = f.ahead.first;
    for (; b != nullptr && b->epoch <= f.held; b = b->next)
        for (size_t i = 0; i < b->copies.count(); ++i) {
            if (ty_status status = os::decommit(im.base + b->copies[i].page * page_bytes, page_bytes))
                return status;
            f.copied.erase(b->copies[i].page);
        }
    for (; b != nullptr; b = b->next)
        if (ty_status status = read_batch(im.journal, *b, {&im, copy_page_in}))
            return status;
    return stand_in_time(im, f.end.epoch);
}

void drop_waiting(image &im) {
    os::lock_guard guard(im.work);
    im.waiting.clear();
}

void append_waiting(image &im, batch_list &batches) {
    os::lock_guard guard(im.work);
    while (batch *b = batches.first) {
        batches.first = b->next;
        b->next = nullptr;
        im.waiting.append(b);
    }
    batches = {};
}

} // namespace

ty_status image_follow_refresh(ty_heap *heap) {
    image &im = *image_of(heap);
    following &f = im.followed;
    if (f.ahead.first != nullptr) {
        if (ty_status status = make_durable(im, f.ahead))
            return status;
        const batch_pages ahead(im, f.ahead);
        const writable_memory writable(im, ahead.known());
        if (writable.status)
            return writable.status;
        f.lost = true;
        if (ty_status status = bring(im))
            return status;
        f.shown = f.end.epoch;
        append_waiting(im, f.ahead);
        heap_learn_top(heap);
        f.lost = false;
    }
    if (has_superfluous_copies(im))
        drop_copies(im);
    return TY_OK;
}

namespace {

// One try, of which any step may meet a change of the files.
ty_status load(image &im, journal_contents &journal) {
    following &f = im.followed;
    image_header header;
    if (ty_status status = follow_stand(im, &header))
        return status;
    if (ty_status status = check_same(im, header))
        return status;
    im.journal.close();
    if (ty_status status = read_journal(im.journal, im.journal_path, journal_use::look, header, &journal))
        return status;
    const batch_list &batches = journal.scan.batches;
    if (batches.pages() * page_bytes > image_reader_allowed())
        return failure(TY_E_MEMORY, "refresh a heap: snapshots have more pages than memory may hold")
            .at(im.image_path)
            .remedy("try again when the writer has checkpointed them");
    if (ty_status status = make_durable(im, batches))
        return status;
    memory_of_image becomes{im, batches, copy_page_in};
    ty_status status = TY_OK;
    f.copied.clear();
    if (im.shares)
        status = heap_renew(im.heap, snapshot_owner(im), memory_of_image::run, &becomes);
    else
        memory_of_image::run(&becomes);
    if (becomes.status || status)
        return becomes.status ? becomes.status : status;
    f.seen = im.header.current = header;
    const batch *newest = batches.last;
    f.shown = newest != nullptr ? newest->epoch : header.epoch;
    f.end = newest != nullptr ? journal_position{newest->epoch, newest->nonce, newest->end}
                              : journal_position{header.epoch, header.nonce, header.journal_next};
    f.newest_lsn = newest != nullptr ? newest->redo_point.lsn : redo_point_of(header).lsn;
    return stand_in_time(im, f.shown);
}

} // namespace

ty_status image_follow_load(ty_heap *heap, image_log *log) {
    image &im = *image_of(heap);
    following &f = im.followed;
    const writable_memory writable(im);
    if (writable.status)
        return writable.status;
    f.lost = true;
    f.ahead.clear();
    drop_waiting(im);
    const std::atomic<uint32_t> nobody_wakes{0};
    for (unsigned tries = 0;; ++tries) {
        journal_contents journal;
        const ty_status status = load(im, journal);
        if (!status) {
            *log = log_with(im, journal.scan.batches);
            append_waiting(im, journal.scan.batches);
            break;
        }
        journal.scan.batches.clear();
        if ((status != TY_E_BUSY && !may_pass(status)) || tries == tries_max)
            return status;
        os::wait_on(nobody_wakes, 0, first_pause_ns << tries);
    }
    if (!im.shares)
        heap_learn_top(heap);
    f.lost = false;
    return TY_OK;
}

ty_status image_follow_begin_change(ty_heap *heap, const os::page_set *words_of, ty_heap **writable) {
    image &im = *image_of(heap);
    ty_status status = begin_writes(im, words_of);
    if (status)
        return status;
    *writable = heap;
    if (!im.shares && im.followed.written == nullptr)
        status = heap_attach_over(heap, snapshot_owner(im), writable);
    if (status) {
        end_writes(im);
        return status;
    }
    if (*writable != heap)
        heap_set_image(*writable, &im);
    im.followed.lost = true;
    return TY_OK;
}

void image_follow_end_change(ty_heap *heap, ty_heap *writable, bool whole) {
    image &im = *image_of(heap);
    if (writable != heap)
        heap_detach_over(heap, writable);
    end_writes(im);
    im.followed.lost = !whole;
}

uint64_t image_follow_superfluous(ty_heap *heap) {
    const following &f = image_of(heap)->followed;
    return f.end.epoch > f.shown && f.image_epoch >= f.end.epoch ? f.copied.count() : 0;
}

} // namespace taiyen
