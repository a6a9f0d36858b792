// The checksums of the image's pages, stored after them.
#pragma once

#include "image_layout.hpp"
#include "src/os/os.hpp"

namespace taiyen {

inline constexpr uint64_t piece_pages = 256; // that a reader of whole files reads at once

// Reads and changes the table block by block; fastest in order of page. A sector whose own checksum is wrong counts as
// 63 unknown sums. Not thread-safe.
class page_sums {
public:
    ty_status start(const storage_file &image, uint64_t table_offset);

    ty_status get(uint64_t page, uint64_t *sum); // 0: unknown
    ty_status set(uint64_t page, uint64_t sum);  // buffered until another block is used or write() is called
    // Makes all unknown; touches only blocks that have been written. They are written again even where all was unknown
    // already: an earlier flush may have failed.
    ty_status clear_range(uint64_t first, uint64_t count);
    ty_status write(); // whatever is still buffered
    // Whether the sector of this page's checksum is damaged.
    ty_status is_damaged(uint64_t page, bool *damaged);
    // The first block at or after `block` that was ever written; a number beyond the table if none was.
    ty_status next_block(uint64_t block, uint64_t *found) const;
    // Writes all blocks that were ever written again, unchanged; damaged sums become unknown.
    ty_status write_again(uint64_t page_count);

    // Copies the table for so many pages from one place to another, when the heap is grown.
    static ty_status copy(const storage_file &image, uint64_t from, uint64_t to, uint64_t bytes);

private:
    ty_status load(uint64_t block);
    sums_sector *sector_of(uint64_t page);

    const storage_file *image_ = nullptr;
    uint64_t table_offset_ = 0;
    uint64_t block_ = UINT64_MAX; // in buffer_
    uint64_t damaged_ = 0;        // bit i: its sector i is damaged
    bool changed_ = false;
    io_buffer buffer_;
};

} // namespace taiyen
