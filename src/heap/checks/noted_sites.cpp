// The allocation sites of blocks whose callers report them (scopes): a table by address, for the process. M10: a
// block's site is that of its last allocation in a scope.
#include "check_runtime.hpp"

#include <atomic>
#include <bit>

namespace taiyen {
namespace {

struct noted_block {
    const void *block; // NULL: a free slot
    uint32_t site;
    uint32_t thread;
};

struct noted_sites {
    os::mutex lock{os::lock_rank::checks}; // guards all members below
    site_table sites;
    noted_block *places = nullptr;
    size_t places_count = 0; // a power of two
    size_t used = 0;

    size_t home_of(const void *block) const {
        return (reinterpret_cast<uintptr_t>(block) >> 4) * 0x9e3779b97f4a7c15 >> (64 - std::countr_zero(places_count));
    }
    size_t next(size_t place) const { return (place + 1) & (places_count - 1); }
    // The slot of the block, or the one where it would go.
    size_t find(const void *block) const {
        size_t place = home_of(block);
        while (places[place].block && places[place].block != block)
            place = next(place);
        return place;
    }
    ty_status make(size_t count) {
        void *memory;
        if (ty_status status = os::map_memory(count * sizeof(noted_block), os::memory_hint::none, &memory))
            return status;
        noted_block *old = places;
        const size_t old_count = places_count;
        places = static_cast<noted_block *>(memory);
        places_count = count;
        for (size_t n = 0; n < old_count; n++)
            if (old[n].block)
                places[find(old[n].block)] = old[n];
        os::unmap_memory(old, old_count * sizeof(noted_block));
        return TY_OK;
    }
    ty_status start() {
        if (places)
            return TY_OK;
        if (ty_status status = sites.start())
            return status;
        const ty_status status = make(4096);
        if (status)
            sites.stop();
        return status;
    }
    // Entries after it that were displaced from their own slot move up.
    void erase(size_t place) {
        for (size_t other = next(place); places[other].block; other = next(other))
            if (((other - home_of(places[other].block)) & (places_count - 1)) >=
                ((other - place) & (places_count - 1))) {
                places[place] = places[other];
                place = other;
            }
        places[place] = {};
        used--;
    }
};

constinit noted_sites noted{};
constinit std::atomic<bool> noting{false}, any_noted{false};

} // namespace

ty_status heap_note_sites(bool on) {
    if (on)
        os::prepare_stacks();
    os::lock_guard guard(noted.lock);
    if (ty_status status = on ? noted.start() : TY_OK)
        return status;
    if (on)
        any_noted.store(true, std::memory_order_relaxed);
    noting.store(on, std::memory_order_relaxed);
    return TY_OK;
}

void heap_note_block(const void *block, const void *caller) {
    if (!noting.load(std::memory_order_relaxed))
        return;
    void *frames[site_frames_max];
    const size_t count = os::take_stack(caller, frames, site_frames_max);
    os::lock_guard guard(noted.lock);
    if (noted.used * 4 >= noted.places_count * 3 && noted.make(noted.places_count * 2))
        return; // the block has no site then
    const size_t place = noted.find(block);
    noted.used += !noted.places[place].block;
    noted.places[place] = {block, noted.sites.enter(frames, count), static_cast<uint32_t>(os::thread_id())};
}

void heap_forget_block(const void *block) {
    if (!any_noted.load(std::memory_order_relaxed))
        return;
    os::lock_guard guard(noted.lock);
    const size_t place = noted.find(block);
    if (noted.places[place].block)
        noted.erase(place);
}

ty_status heap_report_sites(const ty_block *blocks, size_t count, const char *state, ty_site_callback *callback,
                            void *context) {
    site_list list;
    {
        os::lock_guard guard(noted.lock);
        if (ty_status status = noted.start())
            return status;
        noted.sites.clear_sums();
        for (size_t n = 0; n < count; n++) {
            const noted_block &known = noted.places[noted.find(blocks[n].address)];
            noted.sites.add_to_sum(known.block ? known.site : noted.sites.first(), blocks[n].address,
                                   blocks[n].size_bytes, known.block ? known.thread : 0);
        }
        if (ty_status status = list.take(noted.sites))
            return status;
    }
    return list.report(state, callback, context);
}

} // namespace taiyen
