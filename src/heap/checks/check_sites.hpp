// The stacks that a checked heap has seen, each once. Written under the checks' lock; an entry never changes, except
// for its sums, and stays while the heap lives.
#pragma once

#include "../heap.hpp"

namespace taiyen {

inline constexpr uint32_t site_frames_max = 24;

// The sums of a site's blocks.
struct site_sum {
    uint64_t blocks;
    uint64_t bytes;
    void *block; // one of them
    uint64_t size;
    uint64_t thread; // 0: several
};

struct known_site {
    uint64_t hash;
    uint32_t next; // in its bucket
    uint32_t frame_count;
    site_sum sum;
    void *frames[site_frames_max]; // count of them are present
};

class site_table {
public:
    ty_status start();
    void stop();
    // The number of a stack; that of the empty one when there is no room.
    uint32_t enter(void *const *frames, size_t count);
    known_site &at(uint32_t site) const { return *reinterpret_cast<known_site *>(memory_ + size_t{site} * unit); }
    // Iterates over all sites: the first is the empty stack.
    uint32_t first() const { return first_site; }
    uint32_t next(uint32_t site) const { return site + units_of(at(site).frame_count); }
    uint32_t end() const { return end_; }
    void clear_sums() const;
    void add_to_sum(uint32_t site, void *block, uint64_t size, uint64_t thread) const;

private:
    static constexpr size_t unit = 8;
    static constexpr size_t bytes = size_t{32} << 20;
    static constexpr uint32_t bucket_count = 1u << 14;
    static constexpr uint32_t first_site = bucket_count * sizeof(uint32_t) / unit;
    static constexpr uint32_t units_of(uint64_t frame_count) {
        return static_cast<uint32_t>((offsetof(known_site, frames) + frame_count * sizeof(void *)) / unit);
    }
    uint32_t &bucket_of(uint64_t hash) const { return reinterpret_cast<uint32_t *>(memory_)[hash % bucket_count]; }

    char *memory_ = nullptr; // the buckets, then the sites
    uint32_t end_ = first_site;
};

// The sites that have blocks, by bytes.
class site_list {
public:
    site_list() = default;
    site_list(const site_list &) = delete;
    site_list &operator=(const site_list &) = delete;
    ~site_list() { os::unmap_memory(uses_, mapped_bytes_); }
    // Built from their sums. Refers to the table, which must outlive it. Expected: TY_E_MEMORY.
    ty_status take(const site_table &sites);
    // Calls back for each, with a text that states the condition of its blocks, until the callback returns false.
    // Expected: TY_E_MEMORY.
    ty_status report(const char *state, ty_site_callback *callback, void *context);

private:
    ty_site_use *uses_ = nullptr;
    size_t mapped_bytes_ = 0;
    size_t count_ = 0;
};

} // namespace taiyen
