// A heap's checks from start to end: sums of live blocks by site, and checks of the whole heap.
#include "check_runtime.hpp"

#include "../blocks/blocks.hpp"
#include "../threads/threads.hpp"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

constexpr uint64_t quarantine_default = uint64_t{16} << 20;
constexpr uint64_t quarantine_small = uint64_t{256} << 10; // where it only detects double frees
constexpr uint64_t mappings_default = 65530;               // vm.max_map_count, where it cannot be read
constexpr uint64_t samples_max = 256;
constexpr uint32_t leaks_reported_max = 50; // on standard error

// A guarded block takes two mappings: they may take a quarter of all.
uint64_t find_guarded_max(unsigned flags) {
    if ((flags & TY_CHECK_GUARD_PAGES) == 0)
        return samples_max;
    uint64_t mappings = mappings_default;
    static_cast<void>(os::read_number("/proc/sys/vm/max_map_count", &mappings));
    return mappings / 8;
}

// Frees the parts that exist.
void drop(heap_checks *checks) {
    if (checks->watch != nullptr) {
        os::faults::hold held(*checks->watch);
        os::faults::remove(checks->watch);
    }
    checks->records.stop();
    checks->freed.stop();
    checks->sites.stop();
    os::unmap_memory(checks, sizeof(heap_checks));
}

ty_status start_parts(heap_checks *checks, const ty_check_options &options) {
    bool keeps = (options.checks & (TY_CHECK_FREED | TY_CHECK_GUARD_PAGES)) != 0 || options.checks == 0;
    uint64_t bytes = options.quarantine_bytes;
    if (bytes == 0)
        bytes = keeps ? quarantine_default : quarantine_small;
    if (ty_status status = checks->freed.start(bytes); status != TY_OK)
        return status;
    if (ty_status status = checks->sites.start(); status != TY_OK)
        return status;
    if ((options.checks & TY_CHECK_GUARD_PAGES) == 0 && options.sample_every == 0)
        return TY_OK;
    return os::faults::watch_range(os::faults::layer::forbidden, checks->heap->base, checks->heap->limit_bytes,
                                   on_forbidden_access, checks, &checks->watch);
}

void sum_records(const heap_checks &checks) {
    checks.sites.clear_sums();
    for (uint64_t place = 0; place < checks.records.places(); place++) {
        const check_record &record = checks.records.at(place);
        if (record.real != 0 && !record.freed && record.site != 0)
            checks.sites.add_to_sum(record.site, checks.heap->base + record.user, record.user_bytes, record.thread);
    }
}

ty_status each_site(ty_heap *heap, const char *state, ty_site_callback *callback, void *context) {
    site_list list;
    {
        pause_guard paused(heap);
        sum_records(checks_of(heap));
        if (ty_status status = list.take(checks_of(heap).sites))
            return status;
    }
    return list.report(state, callback, context);
}

struct leak_report {
    heap_checks *checks;
    size_t sites = 0;
    size_t blocks = 0;
    size_t bytes = 0;
};

bool report_leak(const ty_site_use *use, void *context) {
    auto &report = *static_cast<leak_report *>(context);
    report.sites++;
    report.blocks += use->block_count;
    report.bytes += use->total_bytes;
    const heap_checks &checks = *report.checks;
    if (checks.found == nullptr) {
        if (report.sites <= leaks_reported_max)
            os::write_standard_error(use->text, strlen(use->text));
        return true;
    }
    ty_finding finding{};
    finding.struct_size = sizeof finding;
    finding.kind = TY_FINDING_LEAK;
    finding.heap = checks.heap;
    finding.address = finding.block = use->block;
    finding.size_bytes = use->size_bytes;
    finding.block_count = use->block_count;
    finding.total_bytes = use->total_bytes;
    finding.allocated = use->site;
    finding.text = use->text;
    checks.found(&finding, checks.found_context);
    return true;
}

void report_leaks(ty_heap *heap) {
    leak_report report{&checks_of(heap)};
    char line[160];
    ty_status status = each_site(heap, "were not freed", report_leak, &report);
    if (checks_of(heap).found != nullptr)
        return;
    int length = 0;
    if (status != TY_OK)
        length = snprintf(line, sizeof line, "taiyen: no memory for a report of what was not freed\n");
    else if (report.sites != 0)
        length =
            snprintf(line, sizeof line, "taiyen: %zu byte%s in %zu block%s of %zu site%s were not freed%s\n",
                     report.bytes, plural(report.bytes), report.blocks, plural(report.blocks), report.sites,
                     plural(report.sites), report.sites > leaks_reported_max ? ", of which 50 are shown above" : "");
    os::write_standard_error(line, static_cast<size_t>(length));
}

void describe(const finding &what, const ty_heap *heap, char *text, size_t text_bytes) {
    const check_record &record = what.record;
    const char *where = what.kind == TY_FINDING_WRITE_FREED    ? "after its free, into"
                        : what.kind == TY_FINDING_WRITE_BEFORE ? "before"
                                                               : "after";
    snprintf(text, text_bytes, "a write at %p, %s the block at %p of %llu byte%s",
             reinterpret_cast<void *>(what.address), where, static_cast<void *>(heap->base + record.user),
             static_cast<unsigned long long>(record.user_bytes), plural(record.user_bytes));
}

void check_live(ty_heap *heap) {
    const heap_checks &checks = checks_of(heap);
    for (uint64_t place = 0;; place++) {
        finding_list findings;
        {
            pause_guard paused(heap);
            while (place < checks.records.places() && findings.count == 0) {
                const check_record &record = checks.records.at(place);
                if (record.real != 0 && !record.freed)
                    check_block(checks, record, nullptr, &findings);
                if (findings.count == 0)
                    place++;
            }
        }
        if (findings.count == 0)
            return;
        report_all(checks_of(heap), findings);
    }
}

} // namespace

static void finish(ty_heap *heap) {
    check_live(heap);
    for (bool done = false; !done;) {
        finding_list findings;
        done = let_all_go(heap, &findings);
        report_all(checks_of(heap), findings);
    }
    if ((heap->checks->flags & TY_CHECK_LEAKS) != 0)
        report_leaks(heap);
}

static void stop(ty_heap *heap) {
    drop(&checks_of(heap));
    heap->checks = nullptr;
}

ty_status heap_each_site(ty_heap *heap, ty_site_callback *callback, void *context) {
    if (heap->checks == nullptr || (heap->checks->flags & TY_CHECK_SITES) == 0)
        return failure(TY_E_UNSUPPORTED, "report where the blocks of the heap at %p were allocated",
                       static_cast<void *>(heap->base))
            .remedy("create it with TY_CHECK_SITES");
    return each_site(heap, "are live", callback, context);
}

static bool as_program_sees(const ty_heap *heap, ty_block *block) {
    const check_record *record = checks_of(heap).records.find(offset_in(heap, block->address));
    if (record == nullptr)
        return true;
    *block = {heap->base + record->user, record->user_bytes};
    return !record->freed;
}

static void subtract_freed(const ty_heap *heap, ty_heap_stats *stats) {
    stats->live_blocks -= checks_of(heap).freed.count();
    stats->live_bytes -= checks_of(heap).freed.bytes();
}

static uint64_t verify_checks(const ty_heap *heap, ty_problem_callback *callback, void *context) {
    const heap_checks &checks = checks_of(heap);
    uint64_t problems = 0;
    for (uint64_t place = 0; place < checks.records.places(); place++) {
        finding_list findings;
        if (checks.records.at(place).real != 0)
            check_block(checks, checks.records.at(place), nullptr, &findings);
        for (size_t i = 0; i < findings.count && callback != nullptr; i++) {
            char text[160];
            describe(findings.all[i], heap, text, sizeof text);
            callback(text, context);
        }
        problems += findings.count;
    }
    return problems;
}

// Runs on the thread that made the access, which works on no heap then: it holds no lock that this needs.
os::faults::outcome on_forbidden_access(void *context, const os::faults::memory_fault &fault) {
    auto &checks = *static_cast<heap_checks *>(context);
    live_block block;
    void *address = reinterpret_cast<void *>(fault.address);
    if (find_block(checks.heap, address, &block) != TY_OK)
        return os::faults::outcome::not_ours;
    check_record record{};
    {
        os::lock_guard guard(checks.lock);
        if (const check_record *found = checks.records.find(block.offset))
            record = *found;
    }
    if (record.real != 0)
        report(checks, {TY_FINDING_ACCESS, nullptr, fault.address, record, fault.write});
    return os::faults::outcome::not_ours;
}

static constexpr check_calls checked_calls = {
    checked_alloc,    checked_free, checked_resize, checked_resize_in_place, checked_usable_size, has_record,
    checked_block_at, sample_due,   take_sample,    as_program_sees,         subtract_freed,      verify_checks,
    finish,           stop};

ty_status heap_start_checks(ty_heap *heap, const ty_check_options &options) {
    if (heap->checks != nullptr || heap->caches != nullptr || top_of(heap) != first_user_page)
        return failure(TY_E_BUSY, "start checks of the heap at %p: it is in use", static_cast<void *>(heap->base))
            .remedy("start them before anything else is done with the heap");
    void *memory;
    if (ty_status status = os::map_memory(sizeof(heap_checks), os::memory_hint::none, &memory); status != TY_OK)
        return status;
    auto *checks = new (memory) heap_checks;
    checks->calls = &checked_calls;
    checks->heap = heap;
    checks->flags = options.checks;
    if ((checks->flags & TY_CHECK_LEAKS) != 0)
        checks->flags |= TY_CHECK_SITES;
    checks->sample_every = options.sample_every;
    checks->sample_left.store(options.sample_every, std::memory_order_relaxed);
    checks->guarded_max = find_guarded_max(options.checks);
    checks->found = options.found;
    checks->found_context = options.found_context;
    if (ty_status status = start_parts(checks, options); status != TY_OK) {
        drop(checks);
        return status;
    }
    heap->checks = checks;
    heap->keeps_extents.store(false, std::memory_order_relaxed);
    if ((checks->flags & TY_CHECK_SITES) != 0 || checks->sample_every != 0)
        os::prepare_stacks();
    return TY_OK;
}

} // namespace taiyen
