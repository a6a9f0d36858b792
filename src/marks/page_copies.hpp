// Copies of pages in memory, each in a slot with a number. A page of zeros takes no memory.
#pragma once

#include "src/os/os.hpp"

namespace taiyen {

class page_copies {
public:
    static constexpr uint32_t none = 0, zeros = 1;

    // Expected: TY_E_MEMORY. No thread writes to the page meanwhile.
    ty_status keep(const char *page, uint32_t *slot);
    void release(uint32_t slot); // also none and zeros
    void copy_to(char *page, uint32_t slot) const;
    uint64_t count() const { return count_; }
    void destroy();

private:
    static constexpr uint32_t first_slot = 2, chunk_slots = 256;
    static constexpr size_t chunk_bytes = chunk_slots * os::page_bytes;
    struct chunk {
        char *pages; // NULL: it has no memory
        uint64_t used[chunk_slots / 64];
        uint32_t used_count;
    };

    ty_status find_chunk(uint32_t *found);
    char *at(uint32_t slot) const {
        return chunks_[(slot - first_slot) / chunk_slots].pages + (slot - first_slot) % chunk_slots * os::page_bytes;
    }

    os::array<chunk> chunks_;
    uint32_t with_room_ = 0; // chunks before it are full
    uint64_t count_ = 0;
};

} // namespace taiyen
