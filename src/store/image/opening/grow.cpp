// Growing the limit of existing files. The page checksums move to the new end; their old place becomes heap pages.
#include "../files/files.hpp"
#include "open_steps.hpp"

namespace taiyen {

// I1: the old table is cleared only when both headers durably name the new one.
ty_status finish_clearing(image &im) {
    image_header &header = im.header.current;
    if (!header.clear_bytes)
        return TY_OK;
    ty_status status =
        fault("old_checksums_stay_after_a_growth") ? TY_OK : im.backing.punch(header.clear_offset, header.clear_bytes);
    if (status == TY_E_UNSUPPORTED) { // then zeros are written
        constexpr uint64_t piece_bytes = 256 * page_bytes;
        io_buffer zeros;
        if ((status = zeros.create(piece_bytes)))
            return status;
        for (uint64_t done = 0; !status && done < header.clear_bytes; done += piece_bytes) {
            uint64_t n = header.clear_bytes - done < piece_bytes ? header.clear_bytes - done : piece_bytes;
            status = im.backing.write(header.clear_offset + done, zeros.data(), n);
        }
    }
    if (status || (status = flush_image(im.backing, im.header)))
        return status;
    header.clear_offset = header.clear_bytes = 0;
    return write_header_twice(im.backing, im.header);
}

// I2: both headers name the new table only after it is durable.
ty_status grow_files(image &im, uint64_t limit_bytes) {
    image_header &header = im.header.current;
    uint64_t table_bytes = sums_table_bytes(header.limit_bytes);
    // After the heap's pages, and after the old table: with a small growth of a large heap the two would overlap.
    uint64_t new_table = image_pages_offset + limit_bytes;
    if (new_table < header.sums_offset + table_bytes)
        new_table = header.sums_offset + table_bytes;
    if (ty_status status = im.backing.set_size(new_table + sums_table_bytes(limit_bytes)))
        return status;
    if (ty_status status = page_sums::copy(im.backing, header.sums_offset, new_table, table_bytes))
        return status;
    if (ty_status status =
            fault("growth_named_before_the_file_is_durable") ? TY_OK : flush_image(im.backing, im.header))
        return status;
    header.clear_offset = header.sums_offset;
    header.clear_bytes = table_bytes;
    header.sums_offset = new_table;
    header.limit_bytes = limit_bytes;
    if (ty_status status = write_header_twice(im.backing, im.header))
        return status;
    return finish_clearing(im);
}

} // namespace taiyen
