// Durable marks of heaps in files: a second tree of marks, in a file of its own (files/marks_file.hpp). The two trees
// know nothing of each other: a return in one is a change of pages to the other.
//
// The base is what the image held when the first mark was made. MK8: a page of the image is overwritten only while the
// file durably holds that page's content in the base. So the file has each page that was ever overwritten since.
#include "../files/files.hpp"
#include "image_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {

struct durable_marks {
    marks_file file; // guarded by marks_lock
    mark_tree tree;  // guarded by control; to be written to the file, by marks_lock, too
    bool compared;   // `changed` is what differs, not all that may. Guarded by control, as is the next
    uint32_t saved_current;
    os::array<marks_file::place> in_view; // of a heap that is open at a mark: its pages that the image does not have
};

namespace {

// ---- Making and ending them

void destroy(durable_marks *marks) {
    marks->tree.destroy();
    marks->~durable_marks();
    free(marks);
}

ty_status allocate(const char *image_path, durable_marks **made) {
    void *memory = os::internal_malloc(sizeof(durable_marks));
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "use durable marks").at(image_path).remedy("free memory");
    *made = ::new (memory) durable_marks{};
    return TY_OK;
}

// A file that belongs to nobody who is known here is not overwritten.
ty_status check_place(const image &im, const char *path) {
    storage_file probe{im.backing.storage};
    const ty_status status = probe.open(path, 0);
    probe.close();
    if (status == TY_E_NOT_FOUND)
        return TY_OK;
    return status ? status
                  : failure(TY_E_MISMATCH, "make a file for durable marks: one is there that the heap does not know")
                        .at(path)
                        .remedy("move it away");
}

} // namespace

ty_status durable_check_place(const image &im) {
    char *path = path_with(im.image_path, marks_suffix);
    if (path == nullptr)
        return TY_E_MEMORY;
    const ty_status status = check_place(im, path);
    free(path);
    return status;
}

namespace {

// With the header owned: it names this open, or the one before it if that is what the image holds.
ty_status create_file(image &im, durable_marks &marks) {
    char *path = path_with(im.image_path, marks_suffix);
    if (path == nullptr)
        return TY_E_MEMORY;
    ty_status status = check_place(im, path);
    if (status == TY_OK)
        status = marks.file.create(im.backing, path, im.header.current);
    free(path);
    return status;
}

// The image's header is this thread's, as a checkpoint's is; both of its slots name this open.
class header_owner {
public:
    explicit header_owner(image &im) : im_(im) {
        os::lock_guard guard(im.work);
        while (im.checkpointing)
            im.changed.wait(im.work);
        im.checkpointing = true;
        named_ = im.open_named;
    }
    ~header_owner() {
        os::lock_guard guard(im_.work);
        im_.checkpointing = false;
        im_.changed.notify_all();
    }
    header_owner(const header_owner &) = delete;
    header_owner &operator=(const header_owner &) = delete;
    ty_status name() { return named_ ? TY_OK : name_open(im_, nullptr); }

private:
    image &im_;
    bool named_;
};

// Under control. Pages that the image lacks are among those that the first mark copies.
ty_status durable_make(image &im) {
    durable_marks *marks = nullptr;
    header_owner owner(im);
    if (ty_status status = owner.name())
        return status;
    if (ty_status status = provide_found(im))
        return status;
    if (ty_status status = allocate(im.image_path, &marks))
        return status;
    marks->tree.session = im.session;
    if (ty_status status = marks->tree.create(im.header.current.limit_bytes / page_bytes, marks->file)) {
        destroy(marks);
        return status;
    }
    marks->compared = true;
    add_what_the_image_lacks(im, marks->tree.changed); // no checkpoint is under way
    os::lock_guard guard(im.marks_lock);
    const ty_status status = create_file(im, *marks);
    if (status == TY_OK)
        im.durable = marks;
    else
        destroy(marks);
    return status;
}

// ---- What pages were

struct content {
    const durable_marks *marks;
    os::array<marks_file::place> places;
    char *pages = nullptr; // one after the other
    size_t next = 0;

    ~content() {
        if (pages != nullptr)
            os::unmap_memory(pages, places.count() * page_bytes);
    }
    ty_status read(const image &im, const os::page_set &wanted);
    static void copy(void *context, uint64_t, char *to) {
        auto &self = *static_cast<content *>(context);
        memcpy(to, self.pages + self.next++ * page_bytes, page_bytes);
    }
};

// As they were at the current mark. Under marks_lock: no checkpoint begins to overwrite what is read from the image.
ty_status content::read(const image &im, const os::page_set &wanted) {
    void *memory = nullptr;
    if (wanted.count() == 0)
        return TY_OK;
    if (ty_status status = places.reserve(wanted.count()))
        return status;
    if (ty_status status = os::map_memory(wanted.count() * page_bytes, os::memory_hint::none, &memory))
        return status;
    pages = static_cast<char *>(memory);
    for (uint64_t page = wanted.next(0); page < wanted.page_count(); page = wanted.next(page + 1)) {
        uint32_t slot = marks->tree.slot_of(page);
        if (slot == page_store::none)
            slot = marks->file.base_slot(page);
        places.push_in_room({page, slot});
    }
    for (size_t i = 0, n = 0; i < places.count(); i += n) {
        const bool in_image = places[i].slot == page_store::none;
        n = 1;
        while (i + n < places.count() && (places[i + n].slot == page_store::none) == in_image &&
               (!in_image || places[i + n].page == places[i].page + n))
            n++;
        char *to = pages + i * page_bytes;
        if (ty_status status =
                in_image ? im.backing.read(image_pages_offset + places[i].page * page_bytes, to, n * page_bytes)
                         : marks->file.read(&places[i], n, to))
            return status;
    }
    return TY_OK;
}

// After an open these pages may differ from the current mark: those of the base, what the image lacks, and those that
// were free when the next snapshot was taken: the image never got what the mark has of them. Paused.
ty_status compare(image &im) {
    durable_marks &marks = *im.durable;
    if (marks.compared)
        return TY_OK;
    add_what_the_image_lacks(im, marks.tree.changed); // first: a checkpoint takes it to the base
    os::lock_guard guard(im.marks_lock);
    marks.file.each_base_page([&](uint64_t page) { marks.tree.changed.insert(page); });
    if (!fault("pages_freed_after_a_mark_not_compared"))
        marks.tree.add_copied(marks.tree.changed);
    content now{&marks, {}};
    if (ty_status status = now.read(im, marks.tree.changed))
        return status;
    for (size_t i = 0; i < now.places.count(); i++)
        if (memcmp(now.pages + i * page_bytes, im.base + now.places[i].page * page_bytes, page_bytes) == 0)
            marks.tree.changed.erase(now.places[i].page);
    marks.compared = true;
    return TY_OK;
}

ty_status check_limit(const image &im, uint64_t pages, uint64_t limit_bytes) {
    const uint64_t used = im.durable->file.used_pages() + pages;
    if (limit_bytes == 0 || used <= limit_bytes / page_bytes)
        return TY_OK;
    return failure(TY_E_SPACE, "mark a heap durably: the file of its marks would have %llu bytes in use",
                   static_cast<unsigned long long>(used * page_bytes))
        .at(im.image_path)
        .remedy("drop marks, or raise the option limit_bytes of %llu", static_cast<unsigned long long>(limit_bytes));
}

ty_status durable_mark_paused(image &im, const char *name, uint64_t limit_bytes) {
    durable_marks &marks = *im.durable;
    page_list pages;
    if (ty_status status = marks.tree.check_unused(name))
        return status;
    if (ty_status status = collect_dirty(im))
        return status;
    if (ty_status status = compare(im))
        return status;
    if (ty_status status = heap_select_pages(im.heap, marks.tree.changed, {}, &pages))
        return status;
    os::lock_guard guard(im.marks_lock);
    if (ty_status status = check_limit(im, pages.count(), limit_bytes))
        return status;
    return marks.tree.add(name, im.base, pages, heap_count_used(im.heap));
}

bool is_named(image &im) {
    os::lock_guard guard(im.work);
    return im.open_named;
}

// Under control.
ty_status save(image &im) {
    os::array<marks_entry> none;
    const bool named = is_named(im);
    os::lock_guard guard(im.marks_lock);
    const ty_status status = im.durable->file.save(im.durable->tree, none, named);
    if (status == TY_OK)
        im.durable->saved_current = im.durable->tree.current();
    return status;
}

// Under control, without marks: nothing needs the file. It is without them first, as it may come back after a power
// cut, when checkpoints have overwritten what it does not know of.
ty_status durable_end(image &im) {
    if (ty_status status = save(im))
        return status;
    os::lock_guard guard(im.marks_lock);
    if (im.durable->file.remove() == TY_OK) {
        destroy(im.durable);
        im.durable = nullptr;
    }
    return TY_OK; // a file without marks does no harm
}

void drop(image &im, uint32_t mark) {
    os::lock_guard guard(im.marks_lock);
    im.durable->tree.drop(mark);
}

void move(image &im, uint32_t mark) {
    os::lock_guard guard(im.marks_lock);
    im.durable->tree.move_to(mark);
}

// Reads the pages that were found, as they are at the mark.
ty_status move_and_read(image &im, uint32_t mark, content &at_mark) {
    os::lock_guard guard(im.marks_lock);
    im.durable->tree.move_to(mark);
    return at_mark.read(im, im.found);
}

// Pages that a checkpoint overwrites, and of which the base has no copy; rising.
ty_status find_new_base(const durable_marks &marks, const batch *first, const batch *last, os::array<uint64_t> &pages) {
    for (const batch *b = first;; b = b->next) {
        for (const page_copy &copy : b->copies)
            if (marks.file.base_slot(copy.page) == page_store::none)
                if (ty_status status = pages.push(copy.page))
                    return status;
        if (b == last)
            break;
    }
    std::sort(pages.begin(), pages.end());
    pages.cut(static_cast<size_t>(std::unique(pages.begin(), pages.end()) - pages.begin()));
    return TY_OK;
}

ty_status copy_base(const image &im, marks_file &file, const os::array<uint64_t> &pages,
                    os::array<marks_entry> &copies) {
    io_buffer buffer;
    if (ty_status status = buffer.create(piece_pages * page_bytes))
        return status;
    if (ty_status status = copies.reserve(pages.count()))
        return status;
    for (size_t i = 0, n = 0; i < pages.count(); i += n) {
        n = 1;
        while (i + n < pages.count() && n < piece_pages && pages[i + n] == pages[i] + n)
            n++;
        if (ty_status status =
                im.backing.read(image_pages_offset + pages[i] * page_bytes, buffer.data(), n * page_bytes))
            return status;
        for (size_t k = 0; k < n; k++) {
            uint32_t slot = page_store::none;
            if (ty_status status = file.keep(buffer.data() + k * page_bytes, &slot))
                return status;
            copies.push_in_room(file.entry_of(pages[i + k], slot));
        }
    }
    return TY_OK;
}

} // namespace

ty_status durable_keep_base(image &im, const batch *first, const batch *last) {
    os::lock_guard guard(im.marks_lock);
    if (im.durable == nullptr || fault("checkpoint_overwrites_the_base_of_durable_marks"))
        return TY_OK;
    durable_marks &marks = *im.durable;
    os::array<uint64_t> pages;
    os::array<marks_entry> copies;
    if (ty_status status = find_new_base(marks, first, last, pages); status || pages.count() == 0)
        return status;
    ty_status status = copy_base(im, marks.file, pages, copies);
    if (status == TY_OK)
        status = marks.file.save(marks.tree, copies, true); // a checkpoint has named the open
    if (status != TY_OK)
        for (const marks_entry &copy : copies)
            marks.file.release(copy.slot);
    return status;
}

static ty_status load(const ty_storage &storage, const char *image_path, const image_header &header, bool writes,
                      durable_marks &marks) {
    char *path = path_with(image_path, marks_suffix);
    if (path == nullptr)
        return TY_E_MEMORY;
    ty_status status = marks.file.open(storage, path, header, writes);
    free(path);
    if (status == TY_OK)
        status = marks.tree.create(header.limit_bytes / page_bytes, marks.file);
    return status == TY_OK ? marks.file.load(marks.tree) : status;
}

ty_status durable_open(image &im) {
    durable_marks *marks = nullptr;
    if (!has_journal(im.kind))
        return TY_OK;
    if (ty_status status = allocate(im.image_path, &marks))
        return status;
    const ty_status status = load(*im.backing.storage, im.image_path, im.header.current, !im.read_only, *marks);
    if (status == TY_OK) {
        marks->tree.session = im.session;
        marks->saved_current = marks->tree.current();
        im.durable = marks;
    } else {
        destroy(marks);
    }
    return status == TY_E_NOT_FOUND ? TY_OK : status;
}

namespace {

// *mixed: image or marks were written meanwhile, and what was read is not of one moment.
ty_status look_once(const storage_file &image, const durable_looker &looker, bool last, bool *mixed) {
    image_header header, now;
    bool repaired = false;
    durable_marks *marks = nullptr;
    if (ty_status status = read_header(image, &header, &repaired))
        return status;
    if (ty_status status = allocate(image.path, &marks))
        return status;
    uint64_t bytes = 0;
    ty_status status = load(*image.storage, image.path, header, false, *marks);
    if (status == TY_OK)
        status = marks->file.get_size(&bytes);
    const ty_error error = status ? keep_error() : ty_error{};
    *mixed = !last && (!marks->file.is_unchanged() || read_header(image, &now, &repaired) != TY_OK ||
                       !(now.open == header.open));
    if (status == TY_OK && !*mixed)
        looker.look(looker.context, marks->tree, bytes);
    destroy(marks);
    return status && status != TY_E_NOT_FOUND ? report_again(error, status) : TY_OK;
}

} // namespace

ty_status durable_look(const storage_file &image, const durable_looker &looker) {
    constexpr int readings_max = 50;
    for (int n = 1;; n++) {
        bool mixed = false;
        const ty_status status = look_once(image, looker, n == readings_max, &mixed);
        if (!mixed)
            return status;
    }
}

ty_status durable_start(image &im) {
    if (im.durable == nullptr)
        return TY_OK;
    heap_pause(im.heap, pause_to::change);
    heap_pin_memory(im.heap); // what is given back would not be found changed
    heap_resume(im.heap);
    return provide_found(im);
}

ty_status durable_make_durable(image &im) {
    return im.durable != nullptr ? im.durable->file.make_durable(im.header.current.open) : TY_OK;
}

// MK9: before the image names it.
ty_status durable_name_open(image &im, const open_identity &previous, const open_identity &open) {
    os::lock_guard guard(im.marks_lock);
    return im.durable != nullptr ? im.durable->file.name_open(previous, open) : TY_OK;
}

ty_status durable_check_growth(const image &im, uint64_t limit_bytes) {
    if (im.durable == nullptr || limit_bytes <= im.header.current.limit_bytes)
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "raise the limit of a heap that has durable marks")
        .at(im.image_path)
        .remedy("drop them first, or leave the limit as it is");
}

bool durable_exist(image &im) {
    return im.durable != nullptr;
}

void durable_note_changed(image &im, const os::page_set &pages) {
    if (im.durable != nullptr)
        im.durable->tree.changed.merge(pages);
}

ty_status durable_save_current(image &im) {
    return im.durable != nullptr && im.durable->saved_current != im.durable->tree.current() ? save(im) : TY_OK;
}

// In a forked child another thread may have been changing all but the file at the fork.
void durable_close(image &im, bool forked) {
    if (im.durable != nullptr && forked)
        im.durable->file.close();
    else if (im.durable != nullptr)
        destroy(im.durable);
    im.durable = nullptr;
}

const mark_tree *durable_tree(const image &im) {
    return im.durable != nullptr ? &im.durable->tree : nullptr;
}

ty_status durable_find(const image &im, const char *name, uint32_t *mark) {
    return im.durable != nullptr ? im.durable->tree.find(name, mark) : mark_not_found(name);
}

ty_status durable_check_unused(const image &im, const char *name) {
    return im.durable != nullptr ? im.durable->tree.check_unused(name) : TY_OK;
}

// MK10: all other pages are in the image as they were at the mark.
ty_status durable_choose_view(image &im, const char *name) {
    uint32_t mark = 0;
    os::page_set pages;
    if (durable_find(im, name, &mark) != TY_OK)
        return mark_not_found(name, im.image_path);
    if (ty_status status = pages.create(im.header.current.limit_bytes / page_bytes))
        return status;
    durable_marks &marks = *im.durable;
    marks.tree.move_to(mark);
    marks.tree.add_copied(pages);
    if (!fault("view_without_what_checkpoints_overwrote"))
        marks.file.each_base_page([&](uint64_t page) { pages.insert(page); });
    ty_status status = marks.in_view.reserve(pages.count());
    for (uint64_t page = pages.next(0); status == TY_OK && page < pages.page_count(); page = pages.next(page + 1)) {
        const uint32_t slot = marks.tree.slot_of(page);
        marks.in_view.push_in_room({page, slot != page_store::none ? slot : marks.file.base_slot(page)});
    }
    pages.destroy();
    return status;
}

uint64_t durable_view_pages(const image &im) {
    return im.durable->in_view.count();
}

ty_status durable_map_view(const image &im) {
    const os::array<marks_file::place> &places = im.durable->in_view;
    io_buffer buffer;
    if (ty_status status = buffer.create(piece_pages * page_bytes))
        return status;
    for (size_t i = 0, n = 0; i < places.count(); i += n) {
        n = std::min<size_t>(piece_pages, places.count() - i);
        if (ty_status status = im.durable->file.read(&places[i], n, buffer.data()))
            return status;
        for (size_t k = 0; k < n; k++)
            memcpy(im.base + places[i + k].page * page_bytes, buffer.data() + k * page_bytes, page_bytes);
    }
    return TY_OK;
}

ty_status durable_mark(image &im, const char *name, uint64_t limit_bytes) {
    if (im.durable == nullptr)
        if (ty_status status = durable_make(im))
            return status;
    heap_pause(im.heap, pause_to::change);
    heap_pin_memory(im.heap); // what is given back would not be found changed
    ty_status status = durable_mark_paused(im, name, limit_bytes);
    heap_resume(im.heap);
    if (status == TY_OK && (status = save(im)) != TY_OK) {
        const ty_error error = keep_error();
        uint32_t made = 0;
        if (im.durable->tree.find(name, &made) == TY_OK)
            drop(im, made);
        status = report_again(error);
    }
    if (status != TY_OK && im.durable->tree.count() == 0) {
        const ty_error error = keep_error();
        static_cast<void>(durable_end(im)); // a file without marks does no harm
        return report_again(error);
    }
    return status;
}

ty_status durable_return(image &im, uint32_t mark) {
    durable_marks &marks = *im.durable;
    if (ty_status status = query_dirty(im))
        return status;
    if (ty_status status = compare(im))
        return status;
    const uint32_t before = marks.tree.current();
    content at_mark{&marks, {}};
    im.found.merge(marks.tree.changed);
    marks.tree.add_differences(mark, im.found);
    ty_status status = move_and_read(im, mark, at_mark);
    if (status == TY_OK && im.found.contains(0))
        status = heap_provide_for(im.heap, at_mark.pages);
    if (status != TY_OK) {
        move(im, before);
        im.found.clear();
        return status;
    }
    heap_replace_pages(im.heap, im.found, {&at_mark, content::copy}, marks.tree.used_pages());
    settle_return(im, marks.tree);
    return TY_OK;
}

// The mark is gone for this process, whatever the disk says.
ty_status durable_drop(image &im, uint32_t mark) {
    drop(im, mark);
    return im.durable->tree.count() == 0 ? durable_end(im) : save(im);
}

} // namespace taiyen
