// Copies of pages, each in a slot with a number; in memory, unless the owner of the tree has a file for them. A page of
// zeros takes no room.
#pragma once

#include "src/os/os.hpp"

namespace taiyen {

// What a mark keeps, where that is stored, too.
struct stored_entries {
    uint64_t offset; // in a file; 0: not stored
    uint64_t bytes;
    uint64_t sum;
};

// Where a tree of marks keeps copies of pages.
class page_store {
public:
    static constexpr uint32_t none = 0, zeros = 1; // no slots

    // Expected: TY_E_MEMORY, and where the store is a file TY_E_SPACE and TY_E_IO. No thread writes to the page
    // meanwhile.
    virtual ty_status keep(const char *page, uint32_t *slot) = 0;
    virtual void release(uint32_t slot) = 0; // also none and zeros
    // A mark has other entries than those that are stored there.
    virtual void release_entries(const stored_entries &) {}

protected:
    ~page_store() = default;
};

bool is_zero_page(const char *page);

class page_copies final : public page_store {
public:
    ty_status keep(const char *page, uint32_t *slot) override;
    void release(uint32_t slot) override;
    void copy_to(char *page, uint32_t slot) const;
    uint64_t count() const { return count_; }
    void destroy();

private:
    static constexpr uint32_t first_slot = 2, chunk_slots = 512;
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
