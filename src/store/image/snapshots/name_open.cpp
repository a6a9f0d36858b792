// Which open of the heap its files belong to. docs/design/image.md, "Files that belong together".
//
//   journal {open, previous} --flush--> log {open, previous} --> image, both headers --flush--> journal {open}
//
// At each step the image names an open that journal and log accept; after the last step, the previous open is no longer
// accepted. That step is flushed with a batch: until there is one, an older image and this journal are the right
// content.
#include "image_runtime.hpp"

#include <algorithm>

namespace taiyen {
namespace {

open_identity next_open(const image &im) {
    open_identity next{};
    next.number = std::max(im.header.current.open.number, im.head.header.open.number) + 1;
    os::random_bytes(&next.random, sizeof next.random);
    return next;
}

ty_status prepare_open(image &im, const image_open_hook *hook) {
    if (ty_status status = flush_image(im.backing, im.header)) // both of its headers name the previous open
        return status;
    journal_header next = im.head.header;
    next.previous = im.header.current.open;
    next.open = next_open(im);
    uint64_t sized_bytes = im.writer.allocated_end;
    if (ty_status status = write_journal_header(im.journal, im.head, next))
        return status;
    im.head.sized_bytes = sized_bytes;
    if (hook)
        if (ty_status status = hook->name_open(hook->context, im.head.header.previous, im.head.header.open))
            return status;
    if (ty_status status = durable_name_open(im, im.head.header.previous, im.head.header.open))
        return status;
    im.open_prepared = true;
    return TY_OK;
}

// The last step, at once: an older image does not know this log, and commits come without a batch.
ty_status refuse_older_image(image &im) {
    journal_header next = im.head.header;
    next.previous = {};
    return write_journal_header(im.journal, im.head, next);
}

} // namespace

// I8: nothing is acknowledged or checkpointed before the files name the open.
ty_status name_open(image &im, const image_open_hook *hook) {
    if (!im.open_prepared)
        if (ty_status status = prepare_open(im, hook))
            return status;
    im.header.current.open = im.head.header.open;
    if (ty_status status = write_header_twice(im.backing, im.header))
        return status;
    if (im.log_is_new)
        if (ty_status status = refuse_older_image(im))
            return status;
    os::lock_guard guard(im.work);
    im.open_named = true;
    im.changed.notify_all();
    return TY_OK;
}

} // namespace taiyen
