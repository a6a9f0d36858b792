// Snapshots of heaps whose blocks other threads store into meanwhile: docs/design/image.md, "Fuzzy snapshots".
//
//   running: copy tables ahead
//   paused:  tables() -> copy what was stored to the tables since
//   running: resumed() -> collect -> copy blocks -> make_log_durable() -> last chunks
#include "image_runtime.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t shadow_pages_kept = 1024; // and four times what the last snapshot needed
constexpr uint64_t few_pages = 32;           // may be copied in the pause
constexpr unsigned rounds_max = 8;           // to get there

struct fuzzy_snapshot {
    image &im;
    const image_fuzzy_callbacks &fuzzy;
    page_extent_use header, tables; // the heap's own pages
    uint64_t used_pages = 0;        // at the pause
    os::page_set stored{};          // pages of blocks that tables() stored into
    page_list ahead{};              // of the tables, copied before the pause, and again where they were stored to since
    page_list paused{};             // other pages copied within the pause
    page_list blocks{};             // and after it

    fuzzy_snapshot(image &of, const image_fuzzy_callbacks &by)
        : im(of), fuzzy(by), header(heap_extent_at(of.heap, 0)),
          tables(heap_extent_at(of.heap, heap_limit(of.heap) / page_bytes - 1)) {}
    ~fuzzy_snapshot() { stored.destroy(); }
    fuzzy_snapshot(const fuzzy_snapshot &) = delete;
    fuzzy_snapshot &operator=(const fuzzy_snapshot &) = delete;
};

ty_status collect_tables(fuzzy_snapshot &snapshot) {
    image &im = snapshot.im;
    for (page_extent_use extent : {snapshot.header, snapshot.tables})
        if (ty_status status = im.tracker.collect_part({extent.first, extent.count}, collection(im).into()))
            return status;
    return TY_OK;
}

// Calls back with each dirty page of the heap's own, ascending.
template <class Call>
void each_of_tables(const fuzzy_snapshot &snapshot, Call call) {
    const os::page_set &dirty = snapshot.im.dirty;
    for (page_extent_use extent : {snapshot.header, snapshot.tables}) {
        const uint64_t end = extent.first + extent.count;
        for (uint64_t page = dirty.next(extent.first); page < end; page = dirty.next(page + 1))
            call(page);
    }
}

// Copies again the pages copied ahead that were stored to since; the other dirty pages stay dirty.
uint64_t copy_again(fuzzy_snapshot &snapshot) {
    image &im = snapshot.im;
    const uint64_t *first = snapshot.ahead.begin(), *end = first + snapshot.ahead.count();
    uint64_t count = 0;
    each_of_tables(snapshot, [&](uint64_t page) {
        const uint64_t *found = std::lower_bound(first, end, page);
        if (found == end || *found != page)
            return;
        im.dirty.erase(page);
        if (!fault("changed_tables_not_copied_again"))
            copy_page(im.ahead.copies + (found - first) * page_bytes, im.base + page * page_bytes);
        count++;
    });
    return count;
}

// I18: the tables are those of the pause. Copying ahead makes the pause depend on the rate of stores, not on the heap's
//      size.
ty_status copy_ahead(fuzzy_snapshot &snapshot) {
    image &im = snapshot.im;
    page_list &list = snapshot.ahead;
    if (ty_status status = collect_tables(snapshot))
        return status;
    if (ty_status status = list.reserve(im.dirty.count()))
        return status;
    each_of_tables(snapshot, [&](uint64_t page) { list.push_in_room(page); });
    if (ty_status status = im.ahead.provide(list.count()))
        return status;
    for (uint64_t i = 0; i < list.count(); ++i)
        copy_page(im.ahead.copies + i * page_bytes, im.base + list[i] * page_bytes);
    move_to_flight(im, list);
    uint64_t left = list.count();
    for (unsigned round = 0; round < rounds_max && left > few_pages; ++round) {
        if (ty_status status = collect_tables(snapshot))
            return status;
        uint64_t before = left;
        left = copy_again(snapshot);
        if (left >= before)
            break;
    }
    return TY_OK;
}

ty_status collect_paused(fuzzy_snapshot &snapshot) {
    image &im = snapshot.im;
    if (ty_status status = collect_tables(snapshot))
        return status;
    const os::page_set &stored = snapshot.stored;
    for (uint64_t page = stored.next(0); page < stored.page_count();) {
        uint64_t end = page + 1;
        while (end < stored.page_count() && stored.contains(end))
            ++end;
        if (ty_status status = im.tracker.collect_part({page, end - page}, collection(im).into()))
            return status;
        page = stored.next(end);
    }
    return TY_OK;
}

ty_status list_paused(fuzzy_snapshot &snapshot) {
    const os::page_set &dirty = snapshot.im.dirty, &stored = snapshot.stored;
    page_list &list = snapshot.paused;
    if (ty_status status = list.reserve(dirty.count()))
        return status;
    const uint64_t first = snapshot.header.count, end = snapshot.tables.first;
    for (uint64_t page = dirty.next(0); page < first; page = dirty.next(page + 1))
        list.push_in_room(page);
    for (uint64_t page = stored.next(first); page < end; page = stored.next(page + 1))
        if (dirty.contains(page))
            list.push_in_room(page);
    for (uint64_t page = dirty.next(end); page < dirty.page_count(); page = dirty.next(page + 1))
        list.push_in_room(page);
    return TY_OK;
}

// I17, I18: the tables, and what tables() stored, as they are now. They are protected before they are copied, as other
// threads store into other blocks of the stored pages.
ty_status copy_paused(fuzzy_snapshot &snapshot) {
    image &im = snapshot.im;
    if (ty_status status = collect_paused(snapshot))
        return status;
    (void)copy_again(snapshot);
    if (ty_status status = list_paused(snapshot))
        return status;
    const page_list &list = snapshot.paused;
    if (ty_status status = im.paused.provide(list.count()))
        return status;
    for (uint64_t i = 0; i < list.count(); ++i)
        copy_page(im.paused.copies + i * page_bytes, im.base + list[i] * page_bytes);
    if (!fault("stores_after_the_pause_count_as_clean"))
        move_to_flight(im, list); // what a collect finds from here on was stored later
    return TY_OK;
}

ty_status pause_and_copy(fuzzy_snapshot &snapshot, uint64_t *pause_ns) {
    const image_fuzzy_callbacks &fuzzy = snapshot.fuzzy;
    if (ty_status status = fuzzy.approach(fuzzy.context))
        return status;
    uint64_t began_ns = os::now_ns();
    heap_pause(snapshot.im.heap);
    snapshot.used_pages = heap_used_bytes(snapshot.im.heap) / page_bytes;
    ty_status status = fuzzy.tables(fuzzy.context, snapshot.stored);
    if (!status && !fault("tables_copied_after_the_pause"))
        status = copy_paused(snapshot);
    ty_error error = status ? keep_error() : ty_error{};
    heap_resume(snapshot.im.heap);
    *pause_ns = os::now_ns() - began_ns;
    if (fuzzy.resumed)
        fuzzy.resumed(fuzzy.context);
    if (!status && fault("tables_copied_after_the_pause"))
        return copy_paused(snapshot);
    return status ? report_again(error) : TY_OK;
}

// I17: pages of blocks are protected before they are copied, and each is copied once.
ty_status collect_blocks(fuzzy_snapshot &snapshot) {
    image &im = snapshot.im;
    if (ty_status status = im.tracker.collect(collection(im).into()))
        return status;
    page_choice choice;
    choice.first = snapshot.header.count;
    choice.end = std::min(snapshot.tables.first, snapshot.used_pages); // H7: unused pages read as zeros
    choice.but = &snapshot.stored;
    choice.extent_at = heap_extent_now;
    return heap_select_pages(im.heap, im.dirty, choice, &snapshot.blocks);
}

ty_status write_pages(fuzzy_snapshot &snapshot, const log_positions &redo_point, uint64_t started_ns, uint64_t *epoch) {
    image &im = snapshot.im;
    const page_list &blocks = snapshot.blocks, &ahead = snapshot.ahead, &paused = snapshot.paused;
    if (!im.writer.open)
        if (ty_status status = writer_open(im, blocks.count() + ahead.count() + paused.count(), 3))
            return status;
    im.writer.started_ns = started_ns;
    im.writer.redo_point = redo_point;
    *epoch = im.writer.target->epoch;
    if (ahead.count())
        if (ty_status status = writer_add(im, ahead.begin(), ahead.count(), false, im.ahead.copies))
            return status;
    if (blocks.count())
        if (ty_status status = writer_add(im, blocks.begin(), blocks.count(), false))
            return status;
    move_to_flight(im, blocks);
    im.copies.last_pages = blocks.count() + ahead.count() + paused.count();
    if (!fault("batch_counts_before_the_log_is_durable"))
        if (ty_status status = snapshot.fuzzy.make_log_durable(snapshot.fuzzy.context)) // I19: the log is durable first
            return status;
    if (fault("stores_after_the_pause_count_as_clean"))
        move_to_flight(im, paused);
    return writer_add(im, paused.begin(), paused.count(), true, im.paused.copies);
}

// The batch fails, and its pages are dirty again (I4).
void give_up(image &im) {
    writer_abandon(im);
    if (!fault("pages_of_an_abandoned_batch_forgotten"))
        im.dirty.merge(im.in_flight);
    im.in_flight.clear();
}

} // namespace

ty_status shadow_pages::provide(uint64_t pages) {
    if (pages <= capacity)
        return TY_OK;
    uint64_t wanted = pages + pages / 4;
    void *memory;
    if (ty_status status = os::map_memory(wanted * page_bytes, os::memory_hint::none, &memory))
        return status;
    release();
    copies = static_cast<char *>(memory);
    capacity = wanted;
    return TY_OK;
}

void shadow_pages::keep(uint64_t pages) {
    if (capacity > std::max(shadow_pages_kept, 4 * pages))
        release();
}

void shadow_pages::release() {
    if (copies)
        os::unmap_memory(copies, capacity * page_bytes);
    copies = nullptr;
    capacity = 0;
}

// What a tracker detects does not change while the heap is open.
bool image_allows_fuzzy(ty_heap *heap) {
    const image *im = image_of(heap);
    return im && has_journal(im->kind) && !im->read_only && im->tracker.sees_racing_writes();
}

ty_status write_fuzzy(image &im, const log_positions *given, const image_fuzzy_callbacks &fuzzy, uint64_t started_ns,
                      uint64_t *epoch) {
    fuzzy_snapshot snapshot(im, fuzzy);
    (void)copies_pressed(im); // for image_evict_copies: here nothing is evicted, as other threads store (I14)
    if (ty_status status = snapshot.stored.create(im.dirty.page_count()))
        return status;
    uint64_t pause_ns = 0;
    ty_status status = copy_ahead(snapshot);
    if (!status)
        status = pause_and_copy(snapshot, &pause_ns);
    if (!status)
        status = collect_blocks(snapshot);
    const log_positions redo_point = given ? *given : im.durable_redo_point; // which tables() may have set
    bool anything = snapshot.blocks.count() || snapshot.ahead.count() || snapshot.paused.count() || im.writer.open ||
                    !(redo_point == im.durable_redo_point);
    if (!status && anything)
        status = write_pages(snapshot, redo_point, started_ns, epoch);
    if (status) {
        give_up(im);
        return status;
    }
    im.ahead.keep(snapshot.ahead.count());
    im.paused.keep(snapshot.paused.count());
    os::lock_guard work_guard(im.work);
    if (!anything)
        *epoch = im.durable_epoch;
    else
        note_pause(im, *epoch, pause_ns);
    return TY_OK;
}

} // namespace taiyen
