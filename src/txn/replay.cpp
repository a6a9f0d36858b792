// Replay: the log's records are done again in memory. They are checked before, all of them, when nothing has been
// changed. Where that kept them in memory they are done from there, else they are read and checked again.
#include "open_steps.hpp"

#include "transaction.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t words_per_page = os::page_bytes / 8;

failure bad_record(const char *name, uint64_t sequence, uint64_t position) {
    return failure(TY_E_DAMAGED, "replay transaction %llu: its record does not fit the heap",
                   (unsigned long long)sequence)
        .at(name, position)
        .remedy("restore the heap's files from a backup");
}

// ---- The scan

struct record_check {
    replay_plan *plan;
    const char *name;
    record_scope scope;
    uint64_t last_page = UINT64_MAX; // words often lie side by side

    ty_status operation(const record_operation &operation) {
        plan->operations += 1;
        if (operation.kind != operation_kind::procedure || procedure_known(operation.procedure))
            return TY_OK;
        return failure(TY_E_NOT_FOUND, "replay the log: nothing is registered as procedure %llu",
                       (unsigned long long)operation.procedure)
            .at(name)
            .remedy("register it with ty_register_procedure before the heap is opened");
    }
    ty_status word(uint64_t word, uint64_t, uint64_t) {
        uint64_t page = word / words_per_page;
        plan->words += 1;
        if (page != last_page)
            plan->pages.insert(page);
        last_page = page;
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *) {
        uint64_t page = first / words_per_page;
        plan->words += count;
        plan->pages.insert_range(page, (first + count - 1) / words_per_page - page + 1);
        return TY_OK;
    }
    ty_status zeros(uint64_t first, uint64_t count) { return words(first, count, nullptr); }

    static ty_status record(void *context, uint64_t sequence, uint64_t position, const uint8_t *bytes, size_t size) {
        auto &self = *static_cast<record_check *>(context);
        ty_status status = record_decode(bytes, size, self.scope, self);
        self.plan->records.add(position, bytes, size);
        return status == TY_E_DAMAGED ? bad_record(self.name, sequence, position) : status;
    }
};

// ---- The replay

// X5: words lie in user pages, and operations are the heap's own, which checks what it is asked. Words in pages that
// the recovered heap has never used are left out: a program declared memory that was in no block of it, free or only
// reserved, and these pages must read as zeros (H7).
struct replayer {
    txn_runtime *rt;
    const char *name;
    record_scope scope;
    uint64_t low = 0; // words before it are another thread's
    uint64_t high = UINT64_MAX;
    uint64_t end = 0; // of its words that pages in use hold

    // Words lie scattered: each store waits for memory. So it is done when so many others have been asked for.
    static constexpr size_t ahead = 32;
    struct store {
        uint64_t *place;
        uint64_t mask;
        uint64_t value;
    };
    store pending[ahead]{};
    size_t first_pending = 0; // of all words since the last flush
    size_t next_pending = 0;

    void look_at_heap() { end = std::max(low, std::min(high, heap_used_bytes(rt->heap) / 8)); }
    char *address_of(uint64_t word) const { return rt->base + word * 8; }
    void do_oldest() {
        const store &oldest = pending[first_pending++ % ahead];
        *oldest.place = (*oldest.place & ~oldest.mask) | oldest.value;
    }
    void flush() {
        while (first_pending != next_pending)
            do_oldest();
    }

    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        if (word - low >= end - low)
            return TY_OK;
        if (next_pending - first_pending == ahead)
            do_oldest();
        auto *place = reinterpret_cast<uint64_t *>(address_of(word));
        __builtin_prefetch(place, 1);
        pending[next_pending++ % ahead] = {place, mask, value};
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *bytes) {
        flush();
        uint64_t from = std::clamp(first, low, end), to = std::clamp(first + count, low, end);
        if (from < to)
            memcpy(address_of(from), bytes + (from - first) * 8, (to - from) * 8);
        return TY_OK;
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        flush();
        uint64_t from = std::clamp(first, low, end), to = std::clamp(first + count, low, end);
        if (from < to)
            memset(address_of(from), 0, (to - from) * 8);
        return TY_OK;
    }
    ty_status operation(const record_operation &operation) {
        flush();
        ty_status status = do_operation(operation);
        look_at_heap();
        return status && operation.kind != operation_kind::procedure ? TY_E_DAMAGED : status;
    }

private:
    ty_status do_operation(const record_operation &operation) {
        void *address = operation.null_address ? nullptr : address_of(operation.word);
        switch (operation.kind) {
        case operation_kind::alloc:
            return heap_restore_alloc(rt->heap, address, operation.size);
        case operation_kind::free:
            return check_not_reserved(*rt, "free", address) ? TY_E_DAMAGED : heap_restore_free(rt->heap, address);
        case operation_kind::resize:
            return check_not_reserved(*rt, "resize", address) ? TY_E_DAMAGED
                                                              : heap_restore_resize(rt->heap, address, operation.size);
        case operation_kind::root:
            return set_root(operation, address);
        case operation_kind::procedure:
            return run_procedure(operation);
        }
        return TY_E_DAMAGED;
    }
    ty_status set_root(const record_operation &operation, void *address) {
        char text[TY_ROOT_NAME_MAX + 1] = {};
        if (operation.byte_count == 0 || operation.byte_count > TY_ROOT_NAME_MAX)
            return TY_E_DAMAGED;
        memcpy(text, operation.bytes, operation.byte_count);
        return heap_restore_root(rt->heap, text, address);
    }
    // It may look things up in the heap, which must not be paused then.
    ty_status run_procedure(const record_operation &operation) {
        heap_restore_end(rt->heap);
        ty_status status = procedure_run(rt->heap, operation.procedure, operation.bytes, operation.byte_count);
        heap_restore_begin(rt->heap);
        return status;
    }

public:
    static ty_status record(void *context, uint64_t sequence, uint64_t position, const uint8_t *bytes, size_t size) {
        auto &self = *static_cast<replayer *>(context);
        ty_status status = record_decode(bytes, size, self.scope, self);
        return status == TY_E_DAMAGED ? bad_record(self.name, sequence, position) : status;
    }
};

// ---- Two threads. A first write to a page copies it, in a fault of its own, which costs more than all else. So where
// many pages will be written, they are copied in long rows before, one half by each thread. Where there are words
// alone, each thread goes on with those of its half.

constexpr uint64_t threads_min_pages = 256; // less is not worth a thread

// The page that so many members lie before.
uint64_t middle_of(const os::page_set &pages) {
    uint64_t page = 0;
    for (uint64_t n = pages.count() / 2; n; --n)
        page = pages.next(page) + 1;
    return page;
}

ty_status replay_kept(replayer &replay, const replay_plan &plan) {
    replay.look_at_heap();
    uint64_t sequence = plan.contents.end.sequence - plan.contents.records;
    ty_status status = plan.records.each([&](uint64_t position, const uint8_t *bytes, size_t size) {
        return replayer::record(&replay, ++sequence, position, bytes, size);
    });
    replay.flush();
    return status;
}

struct half {
    const replay_plan *plan;
    replayer replay; // low and high: its pages
    bool goes_on;
    ty_status status;

    static void *run(void *context) {
        auto &self = *static_cast<half *>(context);
        self.find_memory();
        self.status = self.goes_on ? replay_kept(self.replay, *self.plan) : TY_OK;
        return nullptr;
    }

private:
    void find_memory() {
        const os::page_set &pages = plan->pages;
        uint64_t last = std::min(replay.high / words_per_page, pages.page_count());
        for (uint64_t page = pages.next(replay.low / words_per_page); page < last;) {
            uint64_t end = page + 1;
            while (end < last && pages.contains(end))
                ++end;
            os::populate(replay.rt->base + page * os::page_bytes, (end - page) * os::page_bytes);
            page = pages.next(end);
        }
    }
};

// *replayed: nothing is left to do.
ty_status begin_in_halves(const replayer &whole, const replay_plan &plan, bool *replayed) {
    *replayed = false;
    if (plan.pages.count() < threads_min_pages)
        return TY_OK;
    bool both = whole.rt->threads;
    bool goes_on = both && plan.records.whole() && plan.operations == 0;
    half first{&plan, whole, goes_on, TY_OK}, second = first;
    first.replay.high = second.replay.low = (both ? middle_of(plan.pages) : plan.pages.page_count()) * words_per_page;
    os::thread helper;
    bool helped = both && helper.start(half::run, &second) == TY_OK;
    half::run(&first);
    if (helped)
        helper.join();
    else
        half::run(&second);
    *replayed = goes_on;
    return first.status != TY_OK ? first.status : second.status; // of the same bytes: with the detail of the first
}

ty_status replay_again(const replayer &whole, const log_place &place, const log_identity &identity, log_mark from,
                       const replay_plan &plan) {
    replayer replay = whole;
    replay.look_at_heap();
    log_contents contents{};
    const log_reader reader{&replay, replayer::record, &plan.contents.end};
    ty_status status = log_scan(*place.sink, place.path, identity, from, reader, &contents);
    replay.flush();
    if (!status && memcmp(&contents.end, &plan.contents.end, sizeof contents.end))
        return failure(TY_E_IO, "replay the log: it reads as another than a moment ago")
            .at(place.path)
            .remedy("check the disk");
    return status;
}

} // namespace

ty_status replay_scan(const log_place &place, const log_identity &identity, log_mark from, uint64_t limit_bytes,
                      replay_plan *plan) {
    uint64_t pages = limit_bytes / os::page_bytes;
    if (ty_status status = plan->pages.create(pages))
        return status;
    plan->records.create();
    record_check check{plan, place.path, {heap_header_pages * words_per_page, pages * words_per_page}};
    return log_scan(*place.sink, place.path, identity, from, {&check, record_check::record}, &plan->contents);
}

ty_status replay_run(txn_runtime &rt, const log_place &place, const log_identity &identity, log_mark from,
                     const replay_plan &plan) {
    if (plan.contents.records == 0)
        return TY_OK;
    replayer replay{&rt, place.path, {rt.user_first_word, rt.user_end_word}};
    bool replayed;
    ty_status status = begin_in_halves(replay, plan, &replayed);
    if (status || replayed)
        return status;
    heap_restore_begin(rt.heap);
    status = plan.records.whole() ? replay_kept(replay, plan) : replay_again(replay, place, identity, from, plan);
    heap_restore_end(rt.heap);
    return status;
}

} // namespace taiyen
