// Blocks of a checked heap: how they lie in the blocks of the persistent metadata, and their life.
#include "check_runtime.hpp"

#include "../blocks/blocks.hpp"
#include "../tables/tables.hpp"
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t natural_alignment = 16;
constexpr size_t lead_bytes = 16;         // at least so many watched bytes before a block
constexpr size_t trail_bytes_min = 8;     // and after it
constexpr size_t watched_bytes_max = 128; // at most so many are checked
constexpr char freed_fill = static_cast<char>(0xdb);

// Differs from place to place, so that bytes moved from elsewhere do not match, and is never 0, the value most often
// written past an end.
char watched_byte(const char *place) {
    return static_cast<char>(0x80 | ((reinterpret_cast<uintptr_t>(place) * 29) & 0x7f));
}

struct byte_range {
    char *from;
    char *end;
};

byte_range watched_before(const ty_heap *heap, const check_record &record) {
    uint64_t from = record.user - record.real > watched_bytes_max ? record.user - watched_bytes_max : record.real;
    return {heap->base + from, heap->base + record.user};
}

byte_range watched_after(const ty_heap *heap, const check_record &record) {
    uint64_t from = record.user + record.user_bytes;
    uint64_t end = record.data_end() - from > watched_bytes_max ? from + watched_bytes_max : record.data_end();
    return {heap->base + from, heap->base + end};
}

void set_watched(byte_range range) {
    for (char *at = range.from; at < range.end; at++)
        *at = watched_byte(at);
}

bool has_bounds(const heap_checks &checks, const check_record &record) {
    return record.guarded || (checks.flags & (TY_CHECK_BOUNDS | TY_CHECK_GUARD_PAGES)) != 0;
}

void set_bounds(const heap_checks &checks, const check_record &record) {
    if (!has_bounds(checks, record))
        return;
    set_watched(watched_before(checks.heap, record));
    set_watched(watched_after(checks.heap, record));
}

uint64_t rounded_up(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) & ~(multiple - 1);
}

struct request {
    size_t size;
    size_t alignment; // at least 16
    bool zeroed;
};

// Sizes that no block could have, with the added bytes: left to the allocator to refuse.
bool too_large(const ty_heap *heap, const request &wanted) {
    return wanted.size > heap->limit_bytes || wanted.alignment > heap->limit_bytes;
}

bool may_guard(const heap_checks &checks, const request &wanted) {
    return wanted.alignment <= page_bytes && checks.guarded.load(std::memory_order_relaxed) < checks.guarded_max;
}

// The block ends, up to its alignment, at the inaccessible page.
bool make_guarded(ty_heap *heap, const request &wanted, check_record *record) {
    uint64_t data_bytes = rounded_up(rounded_up(wanted.size, wanted.alignment) + lead_bytes, page_bytes);
    void *real = alloc_extent_entered(heap, nullptr, data_bytes + page_bytes, 0, wanted.zeroed);
    if (real == nullptr)
        return false;
    if (os::forbid(static_cast<char *>(real) + data_bytes, page_bytes) != TY_OK) {
        static_cast<void>(free_entered(heap, nullptr, real)); // an extent, which no cache has; too many mappings
        return false;
    }
    record->real = offset_in(heap, real);
    record->real_bytes = data_bytes + page_bytes;
    record->user = (record->real + data_bytes - wanted.size) & ~(wanted.alignment - 1);
    record->guarded = true;
    return true;
}

bool make_bounded(ty_heap *heap, thread_cache *cache, const request &wanted, bool bounds, check_record *record) {
    uint64_t more = wanted.alignment > natural_alignment ? wanted.alignment : 0;
    size_t bytes = rounded_up(wanted.size, natural_alignment);
    if (bounds)
        bytes = rounded_up(lead_bytes + wanted.size + trail_bytes_min + more, natural_alignment);
    void *real = alloc_entered(heap, cache, bytes, bounds ? 0 : more, wanted.zeroed);
    if (real == nullptr)
        return false;
    record->real = offset_in(heap, real);
    record->user = bounds ? rounded_up(record->real + lead_bytes, wanted.alignment) : record->real;
    live_block block;
    if (find_block(heap, real, &block) != TY_OK)
        return false;
    record->real_bytes = block.bytes;
    return true;
}

// Makes a block and its record. NULL with the detail set.
void *make_block(ty_heap *heap, thread_cache *cache, const request &wanted, bool guarded, check_record record) {
    heap_checks &checks = checks_of(heap);
    record.user_bytes = wanted.size;
    record.thread = static_cast<uint32_t>(os::thread_id());
    bool bounds = (checks.flags & (TY_CHECK_BOUNDS | TY_CHECK_GUARD_PAGES)) != 0;
    bool made = guarded && make_guarded(heap, wanted, &record);
    if (!made && (checks.flags == 0 || !make_bounded(heap, cache, wanted, bounds, &record)))
        return nullptr;
    set_bounds(checks, record);
    ty_status status;
    {
        os::lock_guard guard(checks.lock);
        status = checks.records.add(record);
        if (status == TY_OK && record.guarded)
            checks.guarded.fetch_add(1, std::memory_order_relaxed);
    }
    if (status == TY_OK)
        return heap->base + record.user;
    if (record.guarded)
        static_cast<void>(os::commit(heap->base + record.data_end(), page_bytes));
    static_cast<void>(free_entered(heap, cache, heap->base + record.real)); // the first failure is the one to report
    return nullptr;
}

uint32_t enter_site(heap_checks &checks, void *const *frames, size_t count) {
    if ((checks.flags & TY_CHECK_SITES) == 0 && checks.sample_every == 0)
        return 0;
    os::lock_guard guard(checks.lock);
    return checks.sites.enter(frames, count);
}

// The stack of the calling thread, if sites are recorded.
struct calls {
    void *frames[site_frames_max];
    size_t count;
    calls(const heap_checks &checks, const void *caller)
        : count((checks.flags & TY_CHECK_SITES) != 0 || checks.flags == 0
                    ? os::take_stack(caller, frames, site_frames_max)
                    : 0) {}
};

// The record of the persistent metadata's block at an address; real 0: none.
check_record record_at(ty_heap *heap, const void *address) {
    live_block block;
    if (find_block(heap, address, &block) != TY_OK)
        return {};
    os::lock_guard guard(checks_of(heap).lock);
    const check_record *record = checks_of(heap).records.find(block.offset);
    return record != nullptr ? *record : check_record{};
}

// The kind of finding for a call on what is not a live block.
ty_finding_kind finding_of(const ty_heap *heap, const check_record &record, const void *address) {
    if (record.real == 0)
        return TY_FINDING_WILD_FREE;
    if (heap->base + record.user != address)
        return TY_FINDING_INTERIOR_FREE;
    return TY_FINDING_FREED_TWICE;
}

ty_status refuse(ty_heap *heap, const char *verb, const void *address, const check_record &record) {
    ty_finding_kind kind = finding_of(heap, record, address);
    report(checks_of(heap), {kind, verb, reinterpret_cast<uintptr_t>(address), record, false});
    if (kind == TY_FINDING_WILD_FREE)
        return not_a_block(verb, heap, address);
    return failure(TY_E_ARGUMENT, "%s %p: %s the block at %p of %llu byte%s%s", verb, address,
                   kind == TY_FINDING_FREED_TWICE ? "it is" : "inside", static_cast<void *>(heap->base + record.user),
                   static_cast<unsigned long long>(record.user_bytes), plural(record.user_bytes),
                   record.freed ? ", freed already" : "")
        .remedy("hand in the address that the allocation returned, and only until it is freed");
}

// Makes a freed guarded block inaccessible until it leaves the quarantine; fills others.
void seal(const heap_checks &checks, const check_record &record) {
    char *real = checks.heap->base + record.real;
    if (record.guarded) {
        static_cast<void>(os::decommit(real, record.real_bytes)); // best effort
        static_cast<void>(os::forbid(real, record.real_bytes));   // fewer mappings than before
    } else if ((checks.flags & TY_CHECK_FREED) != 0) {
        memset(checks.heap->base + record.user, freed_fill, record.user_bytes);
    }
}

ty_status release(ty_heap *heap, thread_cache *cache, const check_record &record) {
    char *real = heap->base + record.real;
    if (record.guarded)
        if (ty_status status = os::commit(real, record.real_bytes); status != TY_OK)
            return status;
    return free_entered(heap, cache, real);
}

// Frees blocks of the quarantine until it is within its bounds, unless there is no room for findings. C1: each record
// is of an allocated block, so the record goes first.
ty_status let_go(ty_heap *heap, thread_cache *cache, bool all, finding_list *findings) {
    heap_checks &checks = checks_of(heap);
    for (;;) {
        check_record oldest;
        {
            os::lock_guard guard(checks.lock);
            bool more = all ? !checks.freed.empty() : checks.freed.over();
            if (!more || findings->count + 2 > finding_list::max)
                return TY_OK;
            check_record *record = checks.records.find(checks.freed.oldest());
            oldest = *record;
            checks.freed.drop_oldest(oldest);
            check_block(checks, oldest, nullptr, findings);
            if (!fault("check_record_outlives_its_block"))
                checks.records.remove(record);
            if (oldest.guarded)
                checks.guarded.fetch_sub(1, std::memory_order_relaxed);
        }
        if (ty_status status = release(heap, cache, oldest); status != TY_OK)
            return status;
    }
}

// Takes a live block out of use. False: it is no longer live; *record is its current state.
bool retire(heap_checks &checks, const void *block, uint32_t site, const char *verb, check_record *record, bool *kept,
            finding_list *findings) {
    os::lock_guard guard(checks.lock);
    check_record *found = checks.records.find(record->real);
    *record = found != nullptr ? *found : check_record{};
    if (found == nullptr || found->freed || checks.heap->base + found->user != block)
        return false;
    check_block(checks, *found, verb, findings);
    if (findings->count != 0)
        set_bounds(checks, *found); // reported once
    found->freed_site = site;
    found->freed_thread = static_cast<uint32_t>(os::thread_id());
    *kept = checks.freed.takes(*found);
    found->freed = *kept;
    *record = *found;
    if (*kept) {
        seal(checks, *found);
        checks.freed.put(*found);
        return true;
    }
    checks.records.remove(found);
    if (record->guarded)
        checks.guarded.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

ty_status no_room(const check_record &record, size_t size) {
    return failure(TY_E_MEMORY, "resize a block of %llu byte%s in place to %zu: no room after it",
                   static_cast<unsigned long long>(record.user_bytes), plural(record.user_bytes), size)
        .remedy("resize without asking for the same place");
}

// Sets a live block's new size, if its place is large enough. False: it is not, or the block is not live.
bool set_size(heap_checks &checks, const check_record &seen, size_t size, const char *verb, finding_list *findings) {
    os::lock_guard guard(checks.lock);
    check_record *record = checks.records.find(seen.real);
    if (record == nullptr || record->freed)
        return false;
    uint64_t trail = has_bounds(checks, *record) && !record->guarded ? trail_bytes_min : 0;
    if (size + trail > record->data_end() - record->user)
        return false;
    check_block(checks, *record, verb, findings);
    record->user_bytes = size;
    set_bounds(checks, *record);
    return true;
}

size_t at_least_one(size_t size) {
    return size != 0 ? size : 1;
}

} // namespace

void check_block(const heap_checks &checks, const check_record &record, const char *verb, finding_list *findings) {
    const ty_heap *heap = checks.heap;
    if (record.freed && record.guarded)
        return; // it is inaccessible
    if (has_bounds(checks, record)) {
        byte_range before = watched_before(heap, record);
        const char *at = before.end;
        while (at > before.from && at[-1] == watched_byte(at - 1))
            at--;
        if (at > before.from)
            findings->add({TY_FINDING_WRITE_BEFORE, verb, reinterpret_cast<uintptr_t>(at - 1), record, true});
        byte_range after = watched_after(heap, record);
        at = after.from;
        while (at < after.end && *at == watched_byte(at))
            at++;
        if (at < after.end)
            findings->add({TY_FINDING_WRITE_BEHIND, verb, reinterpret_cast<uintptr_t>(at), record, true});
    }
    if (!record.freed || (checks.flags & TY_CHECK_FREED) == 0)
        return;
    const char *user = heap->base + record.user;
    for (uint64_t i = 0; i < record.user_bytes; i++)
        if (user[i] != freed_fill)
            return findings->add({TY_FINDING_WRITE_FREED, verb, reinterpret_cast<uintptr_t>(user + i), record, true});
}

void *checked_alloc(ty_heap *heap, size_t size, size_t alignment, bool zeroed, const void *caller) {
    heap_checks &checks = checks_of(heap);
    request wanted{at_least_one(size), alignment > natural_alignment ? alignment : natural_alignment, zeroed};
    calls stack(checks, caller);
    void *block = nullptr;
    {
        operation work(heap);
        if (work.cache() == nullptr)
            return nullptr;
        if (too_large(heap, wanted))
            return alloc_entered(heap, work.cache(), size, alignment, zeroed);
        check_record record{};
        record.site = enter_site(checks, stack.frames, stack.count);
        bool guarded = (checks.flags & TY_CHECK_GUARD_PAGES) != 0 && may_guard(checks, wanted);
        block = make_block(heap, work.cache(), wanted, guarded, record);
    }
    after_growth(heap);
    return block;
}

bool sample_due(ty_heap *heap) {
    heap_checks &checks = checks_of(heap);
    if (checks.flags != 0 || checks.sample_left.fetch_sub(1, std::memory_order_relaxed) != 1)
        return false;
    checks.sample_left.store(checks.sample_every, std::memory_order_relaxed);
    return checks.guarded.load(std::memory_order_relaxed) < checks.guarded_max;
}

void *take_sample(ty_heap *heap, size_t size, const void *caller) {
    calls stack(checks_of(heap), caller);
    operation work(heap);
    if (work.cache() == nullptr)
        return nullptr;
    check_record record{};
    record.site = enter_site(checks_of(heap), stack.frames, stack.count);
    return make_block(heap, work.cache(), {at_least_one(size), natural_alignment, false}, true, record);
}

bool has_record(ty_heap *heap, const void *block) {
    if (checks_all(heap))
        return true;
    if (checks_of(heap).guarded.load(std::memory_order_relaxed) == 0)
        return false;
    uint64_t page = offset_in(heap, block) / page_bytes;
    if (page < first_user_page || page >= top_of(heap) || heap->descriptors[page].kind == page_span)
        return false;
    operation work(heap, cache_to_free);
    return record_at(heap, block).real != 0;
}

ty_status checked_free(ty_heap *heap, const char *verb, void *block, const void *caller) {
    heap_checks &checks = checks_of(heap);
    calls stack(checks, caller);
    finding_list findings;
    check_record record;
    ty_status status = TY_OK;
    bool live;
    {
        operation work(heap, cache_to_free);
        uint32_t site = enter_site(checks, stack.frames, stack.count);
        record = record_at(heap, block);
        bool kept = true;
        live = record.real != 0 && retire(checks, block, site, verb, &record, &kept, &findings);
        if (live && !kept)
            status = release(heap, work.cache(), record);
        if (live && status == TY_OK)
            status = let_go(heap, work.cache(), false, &findings);
    }
    report_all(checks, findings);
    return live ? status : refuse(heap, verb, block, record);
}

ty_status checked_resize_in_place(ty_heap *heap, void *block, size_t size) {
    heap_checks &checks = checks_of(heap);
    finding_list findings;
    check_record record;
    bool live, done;
    {
        operation work(heap);
        record = record_at(heap, block);
        live = record.real != 0 && !record.freed && heap->base + record.user == block;
        done = live && set_size(checks, record, at_least_one(size), "resize", &findings);
    }
    report_all(checks, findings);
    if (!live)
        return refuse(heap, "resize", block, record);
    return done ? TY_OK : no_room(record, size);
}

void *checked_resize(ty_heap *heap, void *block, size_t size, const void *caller) {
    ty_block known;
    if (!checked_block_at(heap, block, &known) || known.address != block || size <= known.size_bytes)
        return checked_resize_in_place(heap, block, size) == TY_OK ? block : nullptr;
    void *moved = checks_all(heap) ? checked_alloc(heap, size, 0, false, caller) : heap_alloc(heap, size);
    if (moved == nullptr)
        return nullptr;
    memcpy(moved, block, known.size_bytes);
    return checked_free(heap, "resize", block, caller) == TY_OK ? moved : nullptr;
}

size_t checked_usable_size(ty_heap *heap, const void *block) {
    ty_block known;
    if (checked_block_at(heap, block, &known) && known.address == block)
        return known.size_bytes;
    static_cast<void>(not_a_block("look at", heap, block));
    return 0;
}

bool checked_block_at(ty_heap *heap, const void *address, ty_block *block) {
    operation work(heap, pause_to::look);
    check_record record = record_at(heap, address);
    uint64_t offset = offset_in(heap, address);
    if (record.real == 0 || record.freed || offset - record.user >= record.user_bytes)
        return false;
    *block = {heap->base + record.user, record.user_bytes};
    return true;
}

bool let_all_go(ty_heap *heap, finding_list *findings) {
    operation work(heap, cache_to_free);
    if (let_go(heap, work.cache(), true, findings) != TY_OK)
        return true; // damaged tables: no more checks possible
    return checks_of(heap).freed.empty();
}

} // namespace taiyen
