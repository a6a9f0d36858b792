// Archive heaps: the image alone, mapped shared. A snapshot is durable, but the kernel may write pages before it.
#include "image_runtime.hpp"

namespace taiyen {
namespace {

// A store into a hole of a full disk would raise SIGBUS: so blocks are allocated first.
ty_status provide_blocks(void *context, void *address, size_t bytes) {
    image &im = *static_cast<image *>(context);
    os::dump(address, bytes, true);
    return give_blocks(im, uint64_t(static_cast<char *>(address) - im.base) / page_bytes, bytes / page_bytes);
}

// After a failed flush the kernel treats the pages as clean and does not write them again: the next flush succeeds,
// whatever the disk holds.
ty_status check_believable(const image &im) {
    if (!im.header.flush_failed)
        return TY_OK;
    return failure(TY_E_IO,
                   "take a snapshot of an archive heap after a flush that failed: what the disk holds is unknown")
        .at(im.image_path)
        .remedy("copy what is needed to another heap, discard this one, and look for disk errors in the system log");
}

// The mapping is shared with the parent: a block that the child allocated or freed would be allocated or freed there,
// too. (Y3: a fork leaves the child no lock and no pause of others.)
void leave_to_parent(void *context) {
    image &im = *static_cast<image *>(context);
    if (!fault("child_allocates_in_the_parents_archive"))
        heap_leave(im.heap);
    static_cast<void>(os::protect(im.base, im.mapped_bytes, false));
}

} // namespace

heap_owner archive_owner(image &im) {
    heap_owner owner{&im, provide_blocks, nullptr, false, false, create_claimed_table};
    owner.forked = leave_to_parent;
    return owner;
}

// I16: before a page changes, both headers say that the archive heap is open.
ty_status archive_mark_open(image &im) {
    if (fault("second_open_header_not_flushed")) {
        if (ty_status status = write_header(im.backing, im.header))
            return status;
    } else if (ty_status status = write_header_twice(im.backing, im.header))
        return status;
    os::lock_guard guard(im.work);
    im.open_named = true;
    return TY_OK;
}

// I3: an epoch is acknowledged only after its flush succeeded.
ty_status archive_snapshot(image &im, uint64_t *epoch) {
    if (ty_status status = check_believable(im))
        return status;
    const bool named = image_open_named(im.heap) || fault("pages_written_beside_a_closed_header");
    if (!named) // a close failed, and could not be undone on disk
        if (ty_status status = archive_mark_open(im))
            return status;
    uint64_t started_ns = os::now_ns();
    heap_pause(im.heap);
    ty_status status = im.backing.write_back(im.base, im.mapped_bytes);
    if (!status)
        status = flush_image(im.backing, im.header);
    heap_resume(im.heap);
    if (status) {
        im.header.flush_failed = !fault("archive_believes_a_later_flush");
        return status;
    }
    image_header &header = im.header.current;
    header.epoch = header.durable_epoch = im.durable_epoch + 1;
    if ((status = write_header(im.backing, im.header)) || (status = flush_image(im.backing, im.header))) {
        header.epoch = header.durable_epoch = im.durable_epoch;
        return status;
    }
    os::lock_guard guard(im.work);
    *epoch = im.durable_epoch = header.epoch;
    im.stats.snapshots += 1;
    im.stats.last_pause_ns = im.stats.last_durable_ns = os::now_ns() - started_ns;
    return TY_OK;
}

} // namespace taiyen
