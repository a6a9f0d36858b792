// Replay: the log's records are done again in memory. They are checked before, all of them, when nothing has been
// changed; and again while they are done, since what the check read may have changed on the disk.
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
    uint64_t used_words = 0;

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

    void look_at_heap() { used_words = heap_used_bytes(rt->heap) / 8; }
    char *address_of(uint64_t word) const { return rt->base + word * 8; }
    uint64_t used_of(uint64_t first, uint64_t count) const {
        return first < used_words ? std::min(count, used_words - first) : 0;
    }
    void do_oldest() {
        const store &oldest = pending[first_pending++ % ahead];
        *oldest.place = (*oldest.place & ~oldest.mask) | oldest.value;
    }
    void flush() {
        while (first_pending != next_pending)
            do_oldest();
    }

    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        if (word >= used_words)
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
        memcpy(address_of(first), bytes, used_of(first, count) * 8);
        return TY_OK;
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        flush();
        memset(address_of(first), 0, used_of(first, count) * 8);
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

// ---- Finding memory. A first write to a page copies it, in a fault of its own, which costs more than all else. So
// where many pages will be written, they are copied in long rows before, by two threads.

constexpr uint64_t populate_min_pages = 256; // less is not worth a thread

struct page_share {
    char *base;
    const os::page_set *pages;
    uint64_t first;
    uint64_t end;

    static void *populate(void *context) {
        auto &self = *static_cast<page_share *>(context);
        const os::page_set &pages = *self.pages;
        for (uint64_t page = pages.next(self.first); page < self.end;) {
            uint64_t end = page + 1;
            while (end < self.end && pages.contains(end))
                ++end;
            os::populate(self.base + page * os::page_bytes, (end - page) * os::page_bytes);
            page = pages.next(end);
        }
        return nullptr;
    }
};

// The page that so many members lie before.
uint64_t middle_of(const os::page_set &pages) {
    uint64_t page = 0;
    for (uint64_t n = pages.count() / 2; n; --n)
        page = pages.next(page) + 1;
    return page;
}

void find_memory(const txn_runtime &rt, const os::page_set &pages) {
    if (pages.count() < populate_min_pages)
        return;
    uint64_t middle = rt.threads ? middle_of(pages) : pages.page_count();
    page_share low{rt.base, &pages, 0, middle}, high{rt.base, &pages, middle, pages.page_count()};
    os::thread helper;
    bool helped = rt.threads && helper.start(page_share::populate, &high) == TY_OK;
    page_share::populate(&low);
    if (helped)
        helper.join();
    else
        page_share::populate(&high);
}

} // namespace

ty_status replay_scan(const log_place &place, const log_identity &identity, log_mark from, uint64_t limit_bytes,
                      replay_plan *plan) {
    uint64_t pages = limit_bytes / os::page_bytes;
    if (ty_status status = plan->pages.create(pages))
        return status;
    record_check check{plan, place.path, {heap_header_pages * words_per_page, pages * words_per_page}};
    return log_scan(*place.sink, place.path, identity, from, {&check, record_check::record}, &plan->contents);
}

ty_status replay_run(txn_runtime &rt, const log_place &place, const log_identity &identity, log_mark from,
                     const replay_plan &plan) {
    if (plan.contents.records == 0)
        return TY_OK;
    find_memory(rt, plan.pages);
    replayer replay{&rt, place.path, {rt.user_first_word, rt.user_end_word}};
    replay.look_at_heap();
    log_contents contents{};
    heap_restore_begin(rt.heap);
    const log_reader reader{&replay, replayer::record, &plan.contents.end};
    ty_status status = log_scan(*place.sink, place.path, identity, from, reader, &contents);
    replay.flush();
    heap_restore_end(rt.heap);
    if (!status && memcmp(&contents.end, &plan.contents.end, sizeof contents.end))
        return failure(TY_E_IO, "replay the log: it reads as another than a moment ago")
            .at(place.path)
            .remedy("check the disk");
    return status;
}

} // namespace taiyen
