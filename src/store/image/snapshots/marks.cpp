// Marks of heaps in files, and the return to the last snapshot. docs/design/marks.md explains both.
//
// The base of a heap's marks is what its image holds when the first mark is made. MK4: the page of the base is copied
// before a checkpoint overwrites it. All pages that the image does not hold then are copied by the first mark.
#include "../files/files.hpp"
#include "image_runtime.hpp"
#include "tracking.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {

struct image_marks {
    page_copies copies; // guarded by control, as is the tree
    mark_tree tree;
    page_slots base; // guarded by base_lock, as are the members below
    page_copies base_copies;
    char *view; // the image's pages, mapped; NULL: they are read through the storage
    size_t view_bytes;
};

namespace {

// ---- The base

// A mapping reads through the system's cache, where pages are that the heap has just changed; the storage may read from
// the disk. On a file system in memory a mapping would take memory for holes (I15).
void make_view(image &im, image_marks &marks) {
    void *place = nullptr;
    const size_t bytes = im.mapped_bytes;
    if (im.holes_take_memory || im.backing.storage->map == nullptr ||
        os::reserve(0, bytes, os::page_bytes, &place) != TY_OK || os::release(place, bytes) != TY_OK)
        return;
    if (im.backing.map(place, bytes, image_pages_offset, 0) != TY_OK)
        return; // another thread took the place
    os::dump(place, bytes, false);
    marks.view = static_cast<char *>(place);
    marks.view_bytes = bytes;
}

// Under base_lock. Expected: TY_E_MEMORY, TY_E_IO.
ty_status copy_base(const image &im, image_marks &marks, uint64_t page) {
    if (marks.base.get(page) != page_store::none)
        return TY_OK;
    if (ty_status status = marks.base.provide(page))
        return status;
    uint32_t slot = page_store::none;
    ty_status status = TY_OK;
    if (marks.view != nullptr) {
        status = marks.base_copies.keep(marks.view + page * page_bytes, &slot);
    } else {
        io_buffer buffer;
        status = buffer.create(page_bytes);
        if (status == TY_OK)
            status = im.backing.read(image_pages_offset + page * page_bytes, buffer.data(), page_bytes);
        if (status == TY_OK)
            status = marks.base_copies.keep(buffer.data(), &slot);
    }
    if (status == TY_OK)
        marks.base.set(page, slot);
    return status;
}

// ---- Making and ending them

void destroy(image_marks *marks, const image &im) {
    marks->tree.destroy();
    marks->copies.destroy();
    marks->base.destroy();
    marks->base_copies.destroy();
    if (marks->view != nullptr)
        static_cast<void>(im.backing.unmap(marks->view, marks->view_bytes)); // only address space is left
    marks->~image_marks();
    free(marks);
}

// Under control.
ty_status make_marks(image &im) {
    void *memory = os::internal_malloc(sizeof(image_marks));
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "mark a heap").at(im.image_path).remedy("free memory");
    auto *marks = ::new (memory) image_marks{};
    const uint64_t pages = im.mapped_bytes / page_bytes;
    ty_status status = marks->tree.create(pages, marks->copies);
    if (status == TY_OK)
        status = provide_found(im);
    if (status == TY_OK)
        status = marks->base.create(pages);
    if (status != TY_OK) {
        destroy(marks, im);
        return status;
    }
    make_view(im, *marks);
    add_what_the_image_lacks(im, marks->tree.changed); // first: a checkpoint may bring some of it to the image
    os::lock_guard guard(im.base_lock);                // from now on checkpoints copy what they overwrite
    im.marks = marks;
    return TY_OK;
}

// Under control.
void end_marks(image &im) {
    image_marks *marks = im.marks;
    {
        os::lock_guard guard(im.base_lock);
        im.marks = nullptr;
    }
    destroy(marks, im);
}

ty_status mark_paused(image &im, const char *name) {
    page_list pages;
    mark_tree &tree = im.marks->tree;
    if (ty_status status = tree.check_unused(name))
        return status;
    if (ty_status status = collect_dirty(im))
        return status;
    if (ty_status status = heap_select_pages(im.heap, tree.changed, {}, &pages))
        return status;
    return tree.add(name, im.base, pages, heap_count_used(im.heap));
}

// ---- Returning

// Of pages for which neither the current mark nor its ancestors have a copy.
ty_status copy_bases(image &im, const os::page_set &pages) {
    image_marks &marks = *im.marks;
    os::lock_guard guard(im.base_lock);
    for (uint64_t page = pages.next(0); page < pages.page_count(); page = pages.next(page + 1))
        if (marks.tree.slot_of(page) == page_store::none)
            if (ty_status status = copy_base(im, marks, page))
                return status;
    return TY_OK;
}

void copy_from_base(void *context, uint64_t page, char *to) {
    const auto &marks = *static_cast<image_marks *>(context);
    marks.base_copies.copy_to(to, marks.base.get(page));
}

ty_status return_paused(image &im, uint32_t mark) {
    image_marks &marks = *im.marks;
    if (ty_status status = query_dirty(im))
        return status;
    const uint32_t before = marks.tree.current();
    im.found.merge(marks.tree.changed);
    marks.tree.add_differences(mark, im.found);
    marks.tree.move_to(mark);
    if (ty_status status = copy_bases(im, im.found)) {
        marks.tree.move_to(before);
        im.found.clear();
        return status;
    }
    const page_source base{&marks, copy_from_base};
    apply_mark(im.heap, marks.tree, marks.copies, im.found,
               &base); // no other thread changes the base's slots that it reads
    settle_return(im, marks.tree);
    return TY_OK;
}

// ---- The last snapshot

// Where the pages of a set are, as the newest snapshot has them.
struct snapshot_pages {
    const image *im;
    os::array<page_copy> places; // by page; offset 0: in the image
    char *content = nullptr;     // one after the other
    size_t next = 0;

    ~snapshot_pages() {
        if (content != nullptr)
            os::unmap_memory(content, places.count() * page_bytes);
    }
    ty_status find(image &of, const os::page_set &pages);
    ty_status read();
    static void copy(void *context, uint64_t, char *to) {
        auto &self = *static_cast<snapshot_pages *>(context);
        memcpy(to, self.content + self.next++ * page_bytes, page_bytes);
    }

private:
    ty_status check_sums(const storage_file &file, size_t first, size_t count) const;
};

bool by_page(const page_copy &a, const page_copy &b) {
    return a.page < b.page;
}

ty_status snapshot_pages::find(image &of, const os::page_set &pages) {
    im = &of;
    if (ty_status status = places.reserve(pages.count()))
        return status;
    for (uint64_t page = pages.next(0); page < pages.page_count(); page = pages.next(page + 1))
        places.push_in_room({page, 0, 0});
    os::lock_guard guard(of.work);
    for (const batch *b = of.waiting.first; b != nullptr; b = b->next) // a later copy wins
        for (const page_copy &waiting : b->copies) {
            page_copy *place = std::lower_bound(places.begin(), places.end(), waiting, by_page);
            if (place != places.end() && place->page == waiting.page)
                *place = waiting;
        }
    return TY_OK;
}

ty_status snapshot_pages::check_sums(const storage_file &file, size_t first, size_t count) const {
    for (size_t i = first; i < first + count; i++)
        if (checksum(content + i * page_bytes, page_bytes) != places[i].sum)
            return failure(TY_E_DAMAGED, "read page %llu of the last snapshot: its checksum is wrong",
                           static_cast<unsigned long long>(places[i].page))
                .at(file.path, places[i].offset)
                .remedy("the disk changed the journal after it was written: take a snapshot, or restore from a copy");
    return TY_OK;
}

// Neighbours in a file together. No batch is begun meanwhile, so the journal's space is not reused.
ty_status snapshot_pages::read() {
    void *memory = nullptr;
    if (places.count() == 0)
        return TY_OK;
    if (ty_status status = os::map_memory(places.count() * page_bytes, os::memory_hint::none, &memory))
        return status;
    content = static_cast<char *>(memory);
    for (size_t i = 0, n = 0; i < places.count(); i += n) {
        const bool waits = places[i].offset != 0;
        n = 1;
        while (i + n < places.count() && places[i + n].page == places[i].page + n &&
               (waits ? places[i + n].offset == places[i].offset + n * page_bytes : places[i + n].offset == 0))
            n++;
        const storage_file &file = waits ? im->journal : im->backing;
        const uint64_t offset = waits ? places[i].offset : image_pages_offset + places[i].page * page_bytes;
        if (ty_status status = file.read(offset, content + i * page_bytes, n * page_bytes))
            return status;
        if (ty_status status = waits ? check_sums(file, i, n) : TY_OK)
            return status;
    }
    return TY_OK;
}

// What is not durable is dirty, but for pages of free extents, whose content does not matter; and pages that were given
// back may show something else (MK6).
ty_status revert_paused(image &im, os::page_set &differs, os::page_set &scratch) {
    heap_pin_memory(im.heap);
    if (ty_status status = collect_dirty(im))
        return status;
    differs.merge(im.dirty);
    if (!fault("revert_without_what_was_given_back")) {
        os::lock_guard guard(im.base_lock);
        differs.merge(im.given_back);
        differs.merge(im.given_before);
    }
    snapshot_pages pages;
    if (ty_status status = pages.find(im, differs))
        return status;
    if (ty_status status = pages.read())
        return status;
    heap_replace_pages(im.heap, differs, {&pages, snapshot_pages::copy}, heap_count_used(im.heap));
    settle_tracker(im.tracker, used_parts(im).ranges(), differs, scratch);
    note_changed(im, differs);
    im.dirty.clear();
    os::lock_guard guard(im.base_lock);
    im.given_back.clear();
    im.given_before.clear();
    return TY_OK;
}

// So that what is marked is also what the next open finds.
ty_status snapshot_now(ty_heap *heap) {
    uint64_t epoch = 0;
    const ty_status status = image_snapshot_start(heap, nullptr, nullptr, &epoch);
    return status == TY_OK ? image_snapshot_wait(heap, epoch) : status;
}

// Under control.
ty_status find_mark(const image &im, const char *name, uint32_t *mark) {
    return im.marks != nullptr ? im.marks->tree.find(name, mark) : mark_not_found(name);
}

} // namespace

ty_status provide_found(image &im) {
    return im.found.page_count() == 0 ? im.found.create(im.mapped_bytes / page_bytes) : TY_OK;
}

void add_what_the_image_lacks(image &im, os::page_set &pages) {
    pages.merge(im.dirty);
    pages.merge(im.in_flight);
    os::lock_guard guard(im.work);
    for (const batch *b = im.waiting.first; b != nullptr; b = b->next)
        for (const page_copy &copy : b->copies)
            pages.insert(copy.page);
}

void settle_return(image &im, mark_tree &tree) {
    im.dirty.merge(im.found);
    note_changed(im, im.found);
    settle_tracker(im.tracker, used_parts(im).ranges(), im.found, im.dirty);
    im.found.clear();
    tree.changed.clear();
}

void note_changed(image &im, const os::page_set &pages) {
    if (im.marks != nullptr)
        im.marks->tree.changed.merge(pages);
    durable_note_changed(im, pages);
}

os::page_set &collection::into() {
    return im_.found.page_count() != 0 ? im_.found : im_.dirty;
}

collection::~collection() {
    if (im_.found.page_count() == 0)
        return;
    im_.dirty.merge(im_.found);
    if (!fault("changed_pages_not_noted_for_marks")) // MK2
        note_changed(im_, im_.found);
    im_.found.clear();
}

ty_status keep_base(image &im, const page_copy *copies, size_t count) {
    os::lock_guard guard(im.base_lock);
    for (size_t i = 0; im.marks != nullptr && i < count && !fault("checkpoint_overwrites_the_base_of_marks"); i++)
        if (ty_status status = copy_base(im, *im.marks, copies[i].page))
            return status;
    return TY_OK;
}

ty_status create_given_back(image &im, uint64_t pages) {
    const ty_status status = im.given_back.create(pages);
    return status == TY_OK ? im.given_before.create(pages) : status;
}

void destroy_given_back(image &im) {
    if (im.given_back.page_count() != 0)
        im.given_back.destroy();
    if (im.given_before.page_count() != 0)
        im.given_before.destroy();
}

void note_given_back(image &im, const void *address, size_t bytes) {
    os::lock_guard guard(im.base_lock);
    if (im.given_back.page_count() != 0)
        im.given_back.insert_range(static_cast<uint64_t>(static_cast<const char *>(address) - im.base) / page_bytes,
                                   bytes / page_bytes);
}

void move_given_back(image &im) {
    os::lock_guard guard(im.base_lock);
    if (im.given_back.count() == 0)
        return;
    im.given_before.merge(im.given_back);
    im.given_back.clear();
}

void image_end_marks(image &im) {
    if (im.marks != nullptr)
        end_marks(im);
    if (im.found.page_count() != 0)
        im.found.destroy();
}

ty_status image_mark(ty_heap *heap, const char *name, const ty_mark_options &options) {
    image &im = *image_of(heap);
    const bool durable = options.durable;
    if (ty_status status = check_writer(im, "mark a heap"))
        return status;
    if (durable && im.kind == TY_SNAPSHOT)
        if (ty_status status = snapshot_now(heap))
            return status;
    os::lock_guard guard(im.control);
    take_outcome(im);
    if (ty_status status =
            durable ? im.marks != nullptr ? im.marks->tree.check_unused(name) : TY_OK : durable_check_unused(im, name))
        return status;
    if (durable)
        return durable_mark(im, name, options.limit_bytes);
    if (im.marks == nullptr)
        if (ty_status status = make_marks(im))
            return status;
    heap_pause(heap, pause_to::change);
    heap_pin_memory(heap); // what is given back would not be found changed
    const ty_status status = mark_paused(im, name);
    heap_resume(heap);
    if (im.marks->tree.count() == 0)
        end_marks(im);
    return status;
}

ty_status image_return_to(ty_heap *heap, const char *name) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "return to a mark"))
        return status;
    os::lock_guard guard(im.control);
    take_outcome(im);
    uint32_t mark = 0;
    const bool durable = durable_find(im, name, &mark) == TY_OK;
    if (!durable)
        if (ty_status status = find_mark(im, name, &mark))
            return status;
    heap_pause(heap, pause_to::change);
    const ty_status status = durable ? durable_return(im, mark) : return_paused(im, mark);
    heap_resume(heap);
    return status;
}

ty_status image_find_mark(ty_heap *heap, const char *name) {
    image &im = *image_of(heap);
    os::lock_guard guard(im.control);
    uint32_t mark = 0;
    return durable_find(im, name, &mark) == TY_OK ? TY_OK : find_mark(im, name, &mark);
}

bool image_mark_is_older(ty_heap *heap, const char *name) {
    image &im = *image_of(heap);
    if (im.fork.forked()) // where the return is refused
        return false;
    os::lock_guard guard(im.control);
    uint32_t mark = 0;
    return im.code != TY_CODE_IGNORED && durable_find(im, name, &mark) == TY_OK &&
           durable_tree(im)->at(mark).session != im.session;
}

ty_status image_drop_mark(ty_heap *heap, const char *name) {
    image &im = *image_of(heap);
    if (ty_status status = check_process(im, "drop a mark"))
        return status;
    os::lock_guard guard(im.control);
    uint32_t mark = 0;
    if (durable_find(im, name, &mark) == TY_OK) {
        const ty_status status = check_writer(im, "drop a durable mark");
        return status == TY_OK ? durable_drop(im, mark) : status;
    }
    if (ty_status status = find_mark(im, name, &mark))
        return status;
    im.marks->tree.drop(mark);
    if (im.marks->tree.count() == 0)
        end_marks(im);
    return TY_OK;
}

namespace {

// A copy of files that another process writes to: it has no marks, but the files have.
ty_status each_mark_of_files(const image &im, const ty_storage &storage, ty_mark_callback *callback, void *context) {
    storage_file file{&storage};
    if (ty_status status = file.open(im.image_path, 0))
        return status;
    struct caller {
        ty_mark_callback *callback;
        void *context;
    } called{callback, context};
    const ty_status status = durable_look(file, {&called, [](void *to, const mark_tree &tree, uint64_t) {
                                                     const auto &call = *static_cast<caller *>(to);
                                                     each_mark(nullptr, &tree, call.callback, call.context);
                                                 }});
    file.close();
    return status;
}

} // namespace

ty_status image_each_mark(ty_heap *heap, ty_mark_callback *callback, void *context) {
    image &im = *image_of(heap);
    if (ty_status status = check_process(im, "list marks"))
        return status;
    const ty_storage &storage = copied_files::original_of(*im.backing.storage);
    if (&storage != im.backing.storage && im.durable == nullptr)
        return each_mark_of_files(im, storage, callback, context);
    os::lock_guard guard(im.control);
    const mark_tree *trees[] = {im.marks != nullptr ? &im.marks->tree : nullptr, durable_tree(im)};
    each_mark(trees[0], trees[1], callback, context);
    return TY_OK;
}

ty_status image_revert(ty_heap *heap) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "revert a heap"))
        return status;
    os::lock_guard guard(im.control);
    finish_in_flight(im);
    if (im.writer.open)
        writer_abandon(im); // written back early: no snapshot has these pages yet
    take_outcome(im);
    os::page_set differs, scratch;
    const uint64_t page_count = im.mapped_bytes / page_bytes;
    if (ty_status status = differs.create(page_count))
        return status;
    ty_status status = scratch.create(page_count);
    if (status == TY_OK) {
        heap_pause(heap, pause_to::change);
        status = revert_paused(im, differs, scratch);
        heap_resume(heap);
        scratch.destroy();
    }
    differs.destroy();
    return status;
}

} // namespace taiyen
