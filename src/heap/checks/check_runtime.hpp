// A heap's checks: bounds, freed blocks, sites, sampling. They are separate from the allocator, which passes them the
// calls on a checked heap and otherwise knows nothing of them. docs/design/checks.md explains them.
//
// The checks' lock is taken only between entering a heap and leaving it, so that no thread holds it while the heap is
// paused. Findings are reported after both.
#pragma once

#include "../blocks/blocks.hpp"
#include "../tables/tables.hpp"
#include "check_records.hpp"
#include "check_sites.hpp"

namespace taiyen {

struct heap_checks : check_hooks {
    os::mutex lock{os::lock_rank::checks};
    ty_heap *heap = nullptr; // constant, as is all that heap_start_checks is given
    unsigned sample_every = 0;
    uint64_t guarded_max = 0;
    ty_finding_callback *found = nullptr;
    void *found_context = nullptr;
    os::faults::watch *watch = nullptr;
    std::atomic<uint32_t> sample_left{0};
    std::atomic<uint64_t> guarded{0}; // changes under the lock
    record_table records;             // guarded by lock, as is the rest
    quarantine freed;
    site_table sites;
};
inline heap_checks &checks_of(const ty_heap *heap) {
    return *static_cast<heap_checks *>(heap->checks);
}

// The table's functions for blocks: checks.cpp.
void *checked_alloc(ty_heap *heap, size_t size, size_t alignment, bool zeroed, const void *caller);
ty_status checked_free(ty_heap *heap, const char *verb, void *block, const void *caller);
void *checked_resize(ty_heap *heap, void *block, size_t size, const void *caller);
ty_status checked_resize_in_place(ty_heap *heap, void *block, size_t size);
size_t checked_usable_size(ty_heap *heap, const void *block);
bool has_record(ty_heap *heap, const void *block);
bool checked_block_at(ty_heap *heap, const void *address, ty_block *block);
bool sample_due(ty_heap *heap);
void *take_sample(ty_heap *heap, size_t size, const void *caller);

// One defect.
struct finding {
    ty_finding_kind kind;
    const char *verb;    // of the call that found it; NULL: none did
    uintptr_t address;   // of the defect
    check_record record; // a copy; real 0: no block
    bool write;          // TY_FINDING_ACCESS: it was a write
};

// The findings of one call.
struct finding_list {
    static constexpr size_t max = 6;
    finding all[max];
    size_t count = 0;
    bool full() const { return count == max; }
    void add(const finding &f) {
        if (!full())
            all[count++] = f;
    }
};

// Finds damage to a block's bounds, or to its fill after it was freed: at most two findings.
void check_block(const heap_checks &checks, const check_record &record, const char *verb, finding_list *findings);

// Frees what is in the quarantine, with its findings. False: there is more to come.
bool let_all_go(ty_heap *heap, finding_list *findings);

void report(heap_checks &checks, const finding &what);
void report_all(heap_checks &checks, const finding_list &findings);
// Bytes of text, enough for two sites.
inline constexpr size_t finding_text_bytes = 16384;
struct text_writer {
    char *text;
    size_t used = 0;
    [[gnu::format(printf, 2, 3)]] void add(const char *format, ...);
    void add_site(const char *done, const ty_site &site);
};
// The text of a finding or a site; summed up sites are of leaks.
void write_finding(text_writer &text, const ty_finding &finding, const char *verb, bool write);
void write_sum(text_writer &text, const ty_site_use &use, const char *state);

os::faults::outcome on_forbidden_access(void *context, const os::faults::memory_fault &fault);

} // namespace taiyen
