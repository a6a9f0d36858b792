#include "page_sums.hpp"

#include "checksum.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t sectors_per_block = page_bytes / sums_sector_bytes;

bool all_zero(const sums_sector &sector) {
    for (uint64_t sum : sector.sums)
        if (sum)
            return false;
    return sector.checksum == 0;
}

bool sector_damaged(const sums_sector &sector, uint64_t number) {
    return !all_zero(sector) && sector.checksum != sector_checksum(sector, number);
}

} // namespace

ty_status page_sums::start(const storage_file &image, uint64_t table_offset) {
    image_ = &image;
    table_offset_ = table_offset;
    return buffer_.create(page_bytes);
}

ty_status page_sums::load(uint64_t block) {
    if (block == block_)
        return TY_OK;
    if (ty_status status = write())
        return status;
    block_ = UINT64_MAX;
    if (ty_status status = image_->read(table_offset_ + block * page_bytes, buffer_.data(), page_bytes))
        return status;
    auto *sectors = reinterpret_cast<sums_sector *>(buffer_.data());
    damaged_ = 0;
    for (uint64_t i = 0; i < sectors_per_block; ++i) {
        if (!sector_damaged(sectors[i], block * sectors_per_block + i))
            continue;
        memset(&sectors[i], 0, sizeof sectors[i]);
        damaged_ |= uint64_t{1} << i;
    }
    block_ = block;
    return TY_OK;
}

sums_sector *page_sums::sector_of(uint64_t page) {
    auto *sectors = reinterpret_cast<sums_sector *>(buffer_.data());
    return &sectors[page / sums_per_sector % sectors_per_block];
}

ty_status page_sums::get(uint64_t page, uint64_t *sum) {
    if (ty_status status = load(page / sums_per_block))
        return status;
    *sum = sector_of(page)->sums[page % sums_per_sector];
    return TY_OK;
}

ty_status page_sums::set(uint64_t page, uint64_t sum) {
    if (ty_status status = load(page / sums_per_block))
        return status;
    sector_of(page)->sums[page % sums_per_sector] = sum;
    changed_ = true;
    return TY_OK;
}

ty_status page_sums::is_damaged(uint64_t page, bool *damaged) {
    if (ty_status status = load(page / sums_per_block))
        return status;
    *damaged = damaged_ >> (page / sums_per_sector % sectors_per_block) & 1;
    return TY_OK;
}

ty_status page_sums::next_block(uint64_t block, uint64_t *found) const {
    uint64_t start = 0, end = 0;
    ty_status status = image_->next_data(table_offset_ + block * page_bytes, &start, &end);
    if (status && status != TY_E_NOT_FOUND)
        return status;
    *found = status ? UINT64_MAX : std::max(block, (start - table_offset_) / page_bytes);
    return TY_OK;
}

ty_status page_sums::write_again(uint64_t page_count) {
    const uint64_t blocks = (page_count + sums_per_block - 1) / sums_per_block;
    for (uint64_t block = 0; block < blocks; ++block) {
        ty_status status = next_block(block, &block);
        if (status || block >= blocks)
            return status;
        if ((status = load(block)))
            return status;
        changed_ = true;
        if ((status = write()))
            return status;
    }
    return TY_OK;
}

ty_status page_sums::clear_range(uint64_t first, uint64_t count) {
    for (uint64_t page = first, end = first + count; page < end;) {
        uint64_t block = 0;
        if (ty_status status = next_block(page / sums_per_block, &block))
            return status;
        if (block >= (end + sums_per_block - 1) / sums_per_block)
            return TY_OK;
        page = std::max(page, block * sums_per_block);
        for (uint64_t block_end = std::min((block + 1) * sums_per_block, end); page < block_end; ++page)
            if (ty_status status = set(page, 0))
                return status;
    }
    return TY_OK;
}

ty_status page_sums::write() {
    if (!changed_)
        return TY_OK;
    auto *sectors = reinterpret_cast<sums_sector *>(buffer_.data());
    for (uint64_t i = 0; i < sectors_per_block; ++i)
        if (!all_zero(sectors[i]))
            sectors[i].checksum = sector_checksum(sectors[i], block_ * sectors_per_block + i);
    if (ty_status status = image_->write(table_offset_ + block_ * page_bytes, buffer_.data(), page_bytes))
        return status;
    changed_ = false;
    return TY_OK;
}

ty_status page_sums::copy(const storage_file &image, uint64_t from, uint64_t to, uint64_t bytes) {
    constexpr uint64_t piece_bytes = 256 * page_bytes;
    io_buffer buffer;
    if (ty_status status = buffer.create(piece_bytes))
        return status;
    for (uint64_t at = from, end = from + bytes; at < end;) {
        uint64_t start = 0, data_end = 0;
        ty_status status = image.next_data(at, &start, &data_end);
        if (status == TY_E_NOT_FOUND || (!status && start >= end))
            return TY_OK;
        if (status)
            return status;
        at = start / page_bytes * page_bytes > at ? start / page_bytes * page_bytes : at;
        uint64_t n = end - at < piece_bytes ? end - at : piece_bytes;
        if (data_end < at + n)
            n = (data_end - at + page_bytes - 1) / page_bytes * page_bytes;
        if ((status = image.read(at, buffer.data(), n)) || (status = image.write(to + (at - from), buffer.data(), n)))
            return status;
        at += n;
    }
    return TY_OK;
}

} // namespace taiyen
