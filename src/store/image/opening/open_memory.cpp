// The memory of a heap: the image mapped, and over it what the image does not hold yet.
#include "../snapshots/snapshots.hpp"
#include "follow.hpp"
#include "open_steps.hpp"

#include <cstring>

namespace taiyen {
namespace {

// Another open in this process that has the addresses.
struct owner {
    const image &wanted;
    bool same_heap = false;
    bool same_path = false;
};

void look_at_owner(const heap_image *found, void *context) {
    auto &who = *static_cast<owner *>(context);
    const auto &im = *static_cast<const image *>(found);
    who.same_heap = memcmp(im.identity, who.wanted.header.current.identity, sizeof im.identity) == 0;
    who.same_path = strcmp(im.image_path, who.wanted.image_path) == 0;
}

// A heap has one address range, and its copies have the same.
ty_status address_taken(const image &im, ty_status status) {
    const image_header &header = im.header.current;
    void *base = reinterpret_cast<void *>(header.base);
    owner who{im};
    heap_look_at_owner(base, header.limit_bytes, look_at_owner, &who);
    if (!who.same_heap)
        return status;
    if (who.same_path)
        return failure(TY_E_ADDRESS, "open a heap at %p a second time in this process", base)
            .at(im.image_path)
            .remedy("use the handle of the open that is there, or close that first");
    char there[os::mapping_text_bytes];
    os::describe_mapping(header.base, header.limit_bytes, there, sizeof there); // by the name that it has now
    return failure(TY_E_ADDRESS, "open a heap at %p: a copy of the same heap is open there", base)
        .at(im.image_path)
        .remedy("close that one (%s), or open this one in another process", there);
}

// Maps the image at its address.
ty_status map_image(image &im, bool writable) {
    const image_header &header = im.header.current;
    uint32_t flags =
        (im.kind == TY_ARCHIVE || fault("snapshot_heap_mapped_shared")) && !im.read_only ? TY_MAP_SHARED : 0;
    if (writable)
        flags |= TY_MAP_WRITE;
    void *base = reinterpret_cast<void *>(header.base);
    if (ty_status status = im.backing.map(base, header.limit_bytes, image_pages_offset, flags))
        return status == TY_E_ADDRESS ? address_taken(im, status) : status;
    im.base = static_cast<char *>(base);
    im.mapped_bytes = header.limit_bytes;
    note_file_system(im);
    cover_holes(im, writable);
    return TY_OK;
}

ty_status copy_to_heap(void *context, const page_copy *copies, size_t count, const char *bytes) {
    const image &im = *static_cast<image *>(context);
    for (size_t i = 0; i < count; ++i) {
        if (ty_status status = fill_holes(im, copies[i].page, 1))
            return status;
        memcpy(im.base + copies[i].page * page_bytes, bytes + i * page_bytes, page_bytes);
    }
    return TY_OK;
}

// Maps the image and copies the pages of batches that it does not hold yet over it.
ty_status map_heap(image &im, image_opening &state) {
    const bool restores = state.journal.scan.batches.count != 0 || state.options.mark != nullptr;
    // A log is replayed even if nothing may be changed: image_freeze protects the heap then.
    if (ty_status status = map_image(im, !im.read_only || restores || im.kind == TY_TRANSACTIONAL))
        return status;
    for (const batch *b = state.journal.scan.batches.first; b; b = b->next)
        if (ty_status status = read_batch(im.journal, *b, {&im, copy_to_heap}))
            return status;
    if (ty_status status = state.options.mark != nullptr ? durable_map_view(im) : TY_OK)
        return status;
    if (im.read_only && restores && im.kind != TY_TRANSACTIONAL)
        return os::protect(im.base, im.mapped_bytes, false);
    return TY_OK;
}

// Copies what batches hold of pages [first, first + count) over what is mapped.
ty_status restore_pages(const image &im, const batch_list &batches, uint64_t first, uint64_t count) {
    io_buffer buffer;
    if (ty_status status = buffer.create(page_bytes))
        return status;
    for (const batch *b = batches.first; b; b = b->next)
        for (size_t i = 0; i < b->copies.count(); ++i) {
            const page_copy &copy = b->copies[i];
            if (copy.page < first || copy.page - first >= count)
                continue;
            if (ty_status status = im.journal.read(copy.offset, buffer.data(), page_bytes))
                return status;
            if (ty_status status = fill_holes(im, copy.page, 1))
                return status;
            memcpy(im.base + copy.page * page_bytes, buffer.data(), page_bytes);
        }
    return TY_OK;
}

// Unused pages become anonymous memory: a first touch then costs a page of zeros, without a page of the kernel's file
// cache; and on a full file system in memory, it would raise SIGBUS (I15). For all other pages reading ahead pays,
// unless memory cannot hold the heap: then it would push out pages in use.
ty_status prepare_memory(image &im) {
    if (heap_used_bytes(im.heap) > memory_for(0) / 4)
        os::advise_random(im.base, im.mapped_bytes);
    if (ty_status status = fill_used_holes(im))
        return status;
    if (im.read_only || im.kind == TY_ARCHIVE)
        return TY_OK;
    im.fresh_count = heap_unused(im.heap, im.mapped_bytes, im.fresh);
    for (size_t i = 0; i < im.fresh_count; ++i)
        if (ty_status status = os::replace_with_memory(im.fresh[i].address, im.fresh[i].bytes))
            return status;
    return TY_OK;
}

// The heap's memory holds what is committed; what is written from now on is dirty.
ty_status start_tracking(image &im, ty_tracking tracking) {
    uint64_t page_count = im.mapped_bytes / page_bytes;
    if (ty_status status = im.kind == TY_SNAPSHOT ? create_given_back(im, page_count) : TY_OK)
        return status;
    if (ty_status status = im.dirty.create(page_count))
        return status;
    if (ty_status status = im.in_flight.create(page_count))
        return status;
    if (ty_status status = im.tracker.start(im.base, page_count, method_of(tracking), used_parts(im).ranges()))
        return status;
    im.tracking = true;
    return TY_OK;
}

// The block of the service root; NULL if there is none, or it has no first word.
const char *service_of(const ty_heap *heap) {
    const auto *service = static_cast<const char *>(heap_service_root(heap));
    return service && uintptr_t(service) % sizeof(uint64_t) == 0 ? service : nullptr;
}

// Assembles what heap_attach and the layer above inspect, as the heap will be.
ty_status inspect_heap(image &im, image_opening &state) {
    const batch_list &batches = state.journal.scan.batches;
    if (ty_status status = restore_pages(im, batches, 0, heap_header_pages))
        return status;
    ty_heap *heap = nullptr;
    if (ty_status status = heap_attach(im.base, im.mapped_bytes, heap_owner{}, false, &heap))
        return status;
    const char *service = service_of(heap);
    heap_detach(heap);
    if (!service)
        return TY_OK;
    if (ty_status status = restore_pages(im, batches, uint64_t(service - im.base) / page_bytes, 1))
        return status;
    memcpy(&state.service_word, service, sizeof state.service_word);
    return TY_OK;
}

} // namespace

// Makes the mapped memory a heap. From a private mapping nothing reaches the files (I5).
ty_status start_memory(image &im, const image_opening &state) {
    heap_owner owner = im.kind == TY_ARCHIVE ? archive_owner(im) : snapshot_owner(im);
    bool writable = !im.read_only || im.kind == TY_TRANSACTIONAL; // until image_freeze
    if (ty_status status = heap_attach(im.base, im.mapped_bytes, owner, writable, &im.heap))
        return status;
    memcpy(im.identity, im.header.current.identity, sizeof im.identity); // other opens may read it from here on
    heap_set_image(im.heap, &im);
    leave_unused_out_of_dumps(im);
    if (ty_status status = prepare_memory(im))
        return status;
    return im.read_only || !has_journal(im.kind) ? TY_OK : start_tracking(im, state.options.tracking);
}

namespace {

ty_status take_memory_of_follower(image &im, image_opening &state) {
    image &before = *image_of(state.hook->again);
    const image_header &header = im.header.current;
    if (uintptr_t(before.base) != header.base || before.mapped_bytes != header.limit_bytes ||
        memcmp(before.identity, header.identity, sizeof before.identity) != 0)
        return failure(TY_E_MISMATCH, "write to a heap whose files were replaced").at(im.image_path);
    im.base = before.base;
    im.mapped_bytes = before.mapped_bytes;
    im.heap = before.heap;
    im.client = before.client;
    im.shown = before.shown;
    im.copies.being_written = before.copies.being_written;
    im.copies.being_written_context = before.copies.being_written_context;
    memcpy(im.identity, header.identity, sizeof im.identity);
    note_file_system(im);
    before.base = nullptr;
    before.heap = nullptr;
    state.before = &before;
    follow_leave(before);
    memory_of_image becomes{im, state.journal.scan.batches, copy_to_heap};
    const ty_status status = heap_renew(im.heap, snapshot_owner(im), memory_of_image::run, &becomes);
    heap_set_image(im.heap, &im);
    if (becomes.status || status)
        return becomes.status ? becomes.status : status;
    if (ty_status filled = fill_used_holes(im))
        return filled;
    if (ty_status tracked = start_tracking(im, state.options.tracking))
        return tracked;
    copies_start(im, state.journal.scan.batches);
    return TY_OK;
}

} // namespace

void give_memory_back(image &im, image &before) {
    before.heap = im.heap;
    before.base = im.base;
    before.client = im.client;
    before.followed.lost = true; // a load has the heap renewed
    heap_set_image(before.heap, &before);
    if (im.tracking)
        im.tracker.stop();
    im.tracking = false;
    im.heap = nullptr;
    im.base = nullptr;
}

ty_status take_memory(image &im, image_opening &state) {
    if (state.hook && state.hook->again)
        return take_memory_of_follower(im, state);
    if (ty_status status = map_heap(im, state))
        return status;
    if (ty_status status = start_memory(im, state))
        return status;
    if (has_journal(im.kind))
        copies_start(im, state.journal.scan.batches);
    return TY_OK;
}

ty_status probe_address(const image &im, uint64_t limit_bytes) {
    void *reserved = nullptr;
    if (ty_status status = os::reserve(im.header.current.base, limit_bytes, page_bytes, &reserved))
        return status;
    return os::release(reserved, limit_bytes);
}

ty_status probe_heap(image &im, image_opening &state) {
    if (ty_status status = map_image(im, !im.read_only))
        return status;
    if (ty_status status = inspect_heap(im, state))
        return status;
    void *base = im.base;
    im.base = nullptr;
    return im.backing.unmap(base, im.mapped_bytes);
}

void read_service_word(const ty_heap *heap, image_opening &state) {
    if (const char *service = service_of(heap))
        memcpy(&state.service_word, service, sizeof state.service_word);
}

} // namespace taiyen
