// What the image stores for a layer that has a log: which log, and where each epoch stands in it.
#include "image_runtime.hpp"

#include <cstring>

namespace taiyen {

void set_log(image_header &header, const image_log_choice &log) {
    header.kind = uint32_t(log.identity ? TY_TRANSACTIONAL : TY_SNAPSHOT);
    header.log_identity = log.identity;
    header.log_empty_after_redo_point = log.identity != 0; // it is empty so far
    header.log_streams = log.identity && log.streams > 1 ? log.streams : 0;
    memset(header.log_more, 0, sizeof header.log_more);
    // A log begins at offset 0. Transactions that the heap holds already keep their LSNs while it has logs.
    set_redo_point(header, positions_at_begin(log.identity ? header.log_lsn : 0, header.log_streams));
}

namespace {

// I20: redo points are durable with their epoch. A snapshot from before the heap had this log has none for it.
log_positions redo_point_of(const image_header &header, const batch &last) {
    const log_positions begin = positions_at_begin(last.redo_point.lsn, header.log_streams);
    const stream_position &place = last.redo_point.at[0];
    const bool older = place.offset == 0 && place.generation == 0 && !fault("redo_point_taken_from_before_the_log");
    return last.redo_point.count != begin.count && older ? begin : last.redo_point;
}

} // namespace

image_log log_of(const image_header &header, const batch_list &batches) {
    image_log log{};
    memcpy(log.heap_identity, header.identity, sizeof log.heap_identity);
    log.limit_bytes = header.limit_bytes;
    log.open = header.open;
    log.source = header.source;
    log.log_identity = header.log_identity;
    log.redo_point = batches.last ? redo_point_of(header, *batches.last) : redo_point_of(header);
    log.closed = header.state == uint32_t(image_state::closed) && header.log_empty_after_redo_point && !batches.last;
    return log;
}

image_log log_with(const image &im, const batch_list &batches) {
    image_log log = log_of(im.header.current, batches);
    log.image = &im.backing;
    return log;
}

namespace {

// Changes both headers, durably. On failure the header in memory is as it was; one slot may durably have the change,
// and be believed.
template <class Change>
ty_status change_header(image &im, Change change) {
    {
        os::lock_guard guard(im.work);
        while (im.checkpointing)
            im.changed.wait(im.work);
        im.checkpointing = true; // this thread owns the header
    }
    const image_header before = im.header.current;
    change(im.header.current);
    ty_status status = write_header_twice(im.backing, im.header);
    if (status) {
        const uint64_t number = im.header.current.number;
        im.header.current = before;
        im.header.current.number = number;
    }
    os::lock_guard guard(im.work);
    im.checkpointing = false;
    im.changed.notify_all();
    return status;
}

} // namespace

// If that fails and one slot says that there is no log, that header ignores the log.
ty_status image_detach_log(ty_heap *heap) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "detach a log"))
        return status;
    if (ty_status status = create_given_back(im, im.mapped_bytes / page_bytes)) // as for a heap that never had a log
        return status;
    // A batch that the image does not hold yet would bring its redo point back.
    if (ty_status status = checkpoint_batches(im))
        return status;
    os::lock_guard control_guard(im.control);
    if (ty_status status = change_header(im, [](image_header &header) { set_log(header, {}); }))
        return status;
    os::lock_guard guard(im.work);
    im.kind = TY_SNAPSHOT;
    im.durable_redo_point = {};
    return TY_OK;
}

heap_source image_source(ty_heap *heap, uint8_t *identity, uint64_t *log) {
    image &im = *image_of(heap);
    os::lock_guard guard(im.work);
    while (im.checkpointing)
        im.changed.wait(im.work);
    memcpy(identity, im.identity, sizeof im.identity);
    *log = im.header.current.log_identity;
    return im.header.current.source;
}

ty_status image_set_source(ty_heap *heap, const heap_source &source) {
    image &im = *image_of(heap);
    if (ty_status status = check_writer(im, "note whose transactions a heap has"))
        return status;
    os::lock_guard control_guard(im.control);
    return change_header(im, [&source](image_header &header) {
        header.source = source;
        header.features_read_only &= ~feature_receives;
        if (source.state == uint64_t(source_state::receives))
            header.features_read_only |= feature_receives;
    });
}

ty_status image_freeze(ty_heap **heap) {
    image &im = *image_of(*heap);
    heap_detach(im.heap);
    im.heap = nullptr;
    if (ty_status status = os::protect(im.base, im.mapped_bytes, false))
        return status;
    if (ty_status status = heap_attach(im.base, im.mapped_bytes, heap_owner{}, false, &im.heap))
        return status;
    heap_set_image(im.heap, &im);
    *heap = im.heap;
    return TY_OK;
}

} // namespace taiyen
