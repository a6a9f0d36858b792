// Holes of the image (I15: on a file system in memory, no hole is touched through the mapping).
#include "image_runtime.hpp"
#include "tracking.hpp"

#include <algorithm>

namespace taiyen {
namespace {

// Where the file system cannot preallocate (ext2): pages that have a hole are written with their own content.
ty_status write_as_it_is(const storage_file &file, uint64_t from, uint64_t end) {
    io_page page;
    for (uint64_t at = from; at < end; at += page_bytes) {
        ty_status status = file.read(at, page.bytes, page_bytes);
        if (status || (status = file.write(at, page.bytes, page_bytes)))
            return status;
    }
    return TY_OK;
}

ty_status write_holes(const storage_file &file, uint64_t from, uint64_t end) {
    for (uint64_t at = from; at < end;) {
        uint64_t data = end, data_end = end;
        ty_status status = file.next_data(at, &data, &data_end);
        if (status && status != TY_E_NOT_FOUND)
            return status == TY_E_UNSUPPORTED ? TY_OK : status; // nor can it find holes
        const bool none = status == TY_E_NOT_FOUND || data >= end;
        const uint64_t first_data = none ? end : data / page_bytes * page_bytes;
        if ((status = write_as_it_is(file, at, none ? end : first_data + (data % page_bytes ? page_bytes : 0))))
            return status;
        if (none)
            return TY_OK;
        at = std::max(data_end / page_bytes * page_bytes, first_data);
        if (data_end % page_bytes && at < end) { // a hole begins within the page
            if ((status = write_as_it_is(file, at, at + page_bytes)))
                return status;
            at += page_bytes;
        }
    }
    return TY_OK;
}

} // namespace

ty_status give_blocks(const image &im, uint64_t first, uint64_t count) {
    const uint64_t from = image_pages_offset + first * page_bytes, bytes = count * page_bytes;
    ty_status status = im.backing.allocate(from, bytes);
    return status == TY_E_UNSUPPORTED
               ? write_holes(im.backing, from, fault("archive_stores_into_holes") ? from : from + bytes)
               : status;
}

void note_file_system(image &im) {
    im.holes_take_memory = os::holes_take_memory(im.backing.path);
}

ty_status fill_holes(const image &im, uint64_t first, uint64_t count) {
    const bool stored_into = im.holes_take_memory || im.kind == TY_ARCHIVE;
    return stored_into && !im.read_only ? give_blocks(im, first, count) : TY_OK;
}

ty_status fill_used_holes(const image &im) {
    if (im.read_only || (!im.holes_take_memory && im.kind != TY_ARCHIVE))
        return TY_OK;
    const used_parts used(im);
    const os::page_ranges ranges = used.ranges();
    for (size_t i = 0; i < ranges.count; ++i)
        if (ty_status status = give_blocks(im, ranges.ranges[i].first, ranges.ranges[i].count))
            return status;
    return TY_OK;
}

// A hole that cannot be covered, perhaps for lack of mappings, stays: it can be read while the file system has room.
void cover_holes(const image &im, bool writable) {
    if (!im.holes_take_memory || !im.read_only || im.follows) // a follower sees what is written to a hole later
        return;
    uint64_t at = image_pages_offset, end = at + im.mapped_bytes;
    while (at < end) {
        uint64_t data = end, data_end = end;
        ty_status status = im.backing.next_data(at, &data, &data_end);
        if (status && status != TY_E_NOT_FOUND)
            return;
        data = status ? end : std::min(data / page_bytes * page_bytes, end);
        char *hole = im.base + (at - image_pages_offset);
        const size_t bytes = data - std::min(at, data);
        if (bytes != 0 && (os::replace_with_memory(hole, bytes) || (!writable && os::protect(hole, bytes, false))))
            return;
        at = status ? end : (data_end + page_bytes - 1) / page_bytes * page_bytes;
    }
}

} // namespace taiyen
