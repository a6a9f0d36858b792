// Branches: a new heap in files of its own, at the same address, with what a heap has now.
//
// I26: its files are there with all that the heap had at one moment, or not at all. In a forked child, memory that no
//      process has stored into is that of the image's file: a branch is refused where a process may have overwritten
//      that since the fork.
#include "../files/files.hpp"
#include "../snapshots/snapshots.hpp"
#include "open_steps.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr const char *branch_call = "branch a heap";

struct branch_source {
    image *im;
    storage_file file; // the image, where this process does not have it open for itself
    bool may_change;   // what memory shows of it, by other processes
};

ty_status changed_since_the_fork(const image &im) {
    return failure(TY_E_BUSY, "%s in a forked child: its parent has closed it, or taken snapshots since", branch_call)
        .at(im.image_path)
        .remedy("branch it directly after the fork, while the parent has it open; or make a durable mark before");
}

// What the child's memory shows of the file is what it showed at the fork, and the parent keeps others away.
ty_status check_unchanged(const branch_source &source) {
    const image &im = *source.im;
    const image_header &known = im.header.current;
    image_header header;
    bool repaired = false;
    if (im.overwritten.get() > im.durable_epoch)
        return changed_since_the_fork(im);
    if (ty_status status = read_header(source.file, &header, &repaired))
        return status;
    const bool same = memcmp(header.identity, known.identity, sizeof known.identity) == 0 &&
                      (im.read_only ? header.number == known.number : header.owner_process == known.owner_process);
    return same ? TY_OK : changed_since_the_fork(im);
}

// Paused.
ty_status list_pages(const image &im, page_list *list) {
    os::page_set pages;
    if (ty_status status = pages.create(im.mapped_bytes / page_bytes))
        return status;
    const used_parts used(im);
    for (size_t i = 0; i < used.ranges().count; i++)
        pages.insert_range(used.ranges().ranges[i].first, used.ranges().ranges[i].count);
    const ty_status status = heap_select_pages(im.heap, pages, {}, list);
    pages.destroy();
    return status;
}

// Pages of zeros stay holes: a run has none, or such alone.
ty_status write_pages(const image &im, const page_list &list, const image &made) {
    page_sums sums;
    io_buffer buffer;
    if (ty_status status = sums.start(made.backing, made.header.current.sums_offset))
        return status;
    if (ty_status status = buffer.create(piece_pages * page_bytes))
        return status;
    for (size_t i = 0, n = 0; i < list.count(); i += n) {
        bool zeros = false;
        for (n = 0; i + n < list.count() && n < piece_pages && list[i + n] == list[i] + n; n++) {
            char *page = buffer.data() + n * page_bytes;
            copy_page(page, im.base + list[i + n] * page_bytes);
            const bool zero = is_zero_page(page);
            if (n == 0)
                zeros = zero;
            else if (zero != zeros)
                break;
            if (ty_status status = sums.set(list[i + n], checksum(page, page_bytes)))
                return status;
        }
        if (!zeros)
            if (ty_status status =
                    made.backing.write(image_pages_offset + list[i] * page_bytes, buffer.data(), n * page_bytes))
                return status;
    }
    return sums.write();
}

ty_status write_branch(void *context, image &made) {
    const auto &source = *static_cast<const branch_source *>(context);
    const image &im = *source.im;
    made.header.current.base = reinterpret_cast<uintptr_t>(im.base);
    made.header.places = im.header.places;
    if (im.code != TY_CODE_IGNORED)
        add_code_place(made.header.places, os::find_code_zones());
    page_list list;
    heap_pause(im.heap);
    ty_status status = list_pages(im, &list);
    if (!status)
        status = write_pages(im, list, made);
    heap_resume(im.heap);
    return status || !source.may_change ? status : check_unchanged(source);
}

ty_status create_branch(branch_source &source, const ty_storage &storage, const char *path) {
    const image &im = *source.im;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.storage = &storage;
    options.limit_bytes = im.mapped_bytes;
    options.classes = ty_class_table(im.header.current.classes);
    image *made = nullptr;
    if (ty_status status = image_create(path, options, &made))
        return status;
    made->kind = TY_SNAPSHOT;
    const storage_file *like = source.file.is_open() ? &source.file : &im.backing;
    const ty_status status = create_files(*made, options, nullptr, {&source, write_branch, like});
    if (!status) {
        image_teardown(made);
        return TY_OK;
    }
    const ty_error error = keep_error();
    image_teardown(made);
    return report_again(error);
}

} // namespace

ty_status image_branch(ty_heap *heap, const char *path) {
    image &im = *image_of(heap);
    const ty_storage &storage = copied_files::original_of(*im.backing.storage);
    const bool forked = im.fork.forked(), copied = &storage != im.backing.storage;
    branch_source source{&im, {&storage}, forked && !copied};
    char *resolved = nullptr;
    if (ty_status status = resolve_path(storage, path, &resolved))
        return status;
    ty_status status = TY_OK;
    if (forked || copied)
        status = source.file.open(im.image_path, 0);
    if (!status && source.may_change) {
        ask_to_put_off(source.file); // without it the parent may write to it meanwhile
        status = check_unchanged(source);
    }
    if (!status) {
        os::lock_guard guard(im.control); // free in a child
        status = create_branch(source, storage, resolved);
    }
    source.file.close();
    free(resolved);
    return status;
}

} // namespace taiyen
