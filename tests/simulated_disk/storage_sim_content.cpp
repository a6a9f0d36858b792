#include "storage_sim_content.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::os::sim {

const page_ref &zero_page() {
    static const page_ref zeros = std::make_shared<const page>();
    return zeros;
}

page_ref make_page(const void *bytes) {
    auto made = std::make_shared<page>();
    std::memcpy(made->bytes.data(), bytes, page_size);
    return made;
}

const page *content::find(uint64_t number) const {
    auto found = chunks_.find(number / chunk_pages);
    return found == chunks_.end() ? nullptr : found->second->pages[number % chunk_pages].get();
}

void content::put(uint64_t number, page_ref replacement) {
    auto &owned = chunks_[number / chunk_pages];
    if (!owned) {
        owned = std::make_shared<chunk>();
    } else if (owned.use_count() > 1) {
        owned = std::make_shared<chunk>(*owned);
    }
    page_ref &slot = owned->pages[number % chunk_pages];
    allocated_ += static_cast<uint64_t>(replacement != nullptr) - static_cast<uint64_t>(slot != nullptr);
    slot = std::move(replacement);
}

uint64_t content::next(uint64_t number) const {
    auto it = chunks_.lower_bound(number / chunk_pages);
    for (; it != chunks_.end(); ++it) {
        uint64_t first = it->first * chunk_pages;
        for (uint64_t i = number > first ? number - first : 0; i < chunk_pages; ++i) {
            if (it->second->pages[i]) {
                return first + i;
            }
        }
    }
    return UINT64_MAX;
}

void content::read(uint64_t offset, void *buffer, uint64_t bytes) const {
    auto *to = static_cast<unsigned char *>(buffer);
    while (bytes > 0) {
        uint64_t within = offset % page_size;
        uint64_t piece = std::min(bytes, page_size - within);
        if (const page *from = find(offset / page_size)) {
            std::memcpy(to, from->bytes.data() + within, piece);
        } else {
            std::memset(to, 0, piece);
        }
        to += piece;
        offset += piece;
        bytes -= piece;
    }
}

void content::drop_pages(uint64_t first, uint64_t last) {
    for (uint64_t n = next(first); n < last; n = next(n + 1)) {
        put(n, nullptr);
    }
}

void content::zero_part(uint64_t number, uint64_t from, uint64_t to) {
    const page *old = find(number);
    if (!old || from >= to) {
        return;
    }
    auto changed = std::make_shared<page>(*old);
    std::memset(changed->bytes.data() + from, 0, to - from);
    put(number, std::move(changed));
}

void content::drop_beyond_size() {
    zero_part(size_ / page_size, size_ % page_size, size_ % page_size ? page_size : 0);
    drop_pages((size_ + page_size - 1) / page_size, UINT64_MAX);
}

void content::resize(uint64_t size) {
    bool shrinks = size < size_;
    size_ = size;
    if (shrinks) {
        drop_beyond_size();
    }
}

uint64_t content::holes(uint64_t offset, uint64_t bytes) const {
    uint64_t count = 0;
    for (uint64_t n = offset / page_size; bytes > 0 && n <= (offset + bytes - 1) / page_size; ++n) {
        count += find(n) == nullptr;
    }
    return count;
}

void content::fill_holes(uint64_t offset, uint64_t bytes) {
    for (uint64_t n = offset / page_size; bytes > 0 && n <= (offset + bytes - 1) / page_size; ++n) {
        if (!find(n)) {
            put(n, zero_page());
        }
    }
}

void content::punch(uint64_t offset, uint64_t bytes) {
    uint64_t end = offset + bytes;
    uint64_t first = (offset + page_size - 1) / page_size;
    uint64_t last = end / page_size;
    if (first > last) { // within one page
        zero_part(last, offset % page_size, end % page_size);
        return;
    }
    zero_part(offset / page_size, offset % page_size, offset % page_size ? page_size : 0);
    zero_part(last, 0, end % page_size);
    drop_pages(first, last);
}

} // namespace taiyen::os::sim
