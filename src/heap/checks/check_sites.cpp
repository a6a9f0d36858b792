#include "check_runtime.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

uint64_t hash_of(void *const *frames, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ reinterpret_cast<uintptr_t>(frames[i])) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    return hash;
}

} // namespace

ty_status site_table::start() {
    void *memory;
    if (ty_status status = os::map_memory(bytes, os::memory_hint::none, &memory); status != TY_OK)
        return status;
    memory_ = static_cast<char *>(memory);
    enter(nullptr, 0);
    return TY_OK;
}

void site_table::stop() {
    os::unmap_memory(memory_, bytes);
    memory_ = nullptr;
}

uint32_t site_table::enter(void *const *frames, size_t count) {
    uint64_t hash = hash_of(frames, count);
    uint32_t &bucket = bucket_of(hash);
    for (uint32_t site = bucket; site != 0; site = at(site).next) {
        const known_site &known = at(site);
        if (known.hash == hash && known.frame_count == count &&
            (count == 0 || memcmp(known.frames, frames, count * sizeof(void *)) == 0))
            return site;
    }
    if ((uint64_t{end_} + units_of(count)) * unit > bytes)
        return first_site;
    uint32_t site = end_;
    known_site &made = at(site);
    made.hash = hash;
    made.frame_count = static_cast<uint32_t>(count);
    if (count != 0)
        memcpy(made.frames, frames, count * sizeof(void *));
    made.next = bucket;
    bucket = site;
    end_ += units_of(count);
    return site;
}

void site_table::clear_sums() const {
    for (uint32_t site = first(); site < end(); site = next(site))
        at(site).sum = {};
}

void site_table::add_to_sum(uint32_t site, void *block, uint64_t size, uint64_t thread) const {
    site_sum &sum = at(site).sum;
    sum.thread = sum.blocks == 0 || sum.thread == thread ? thread : 0;
    sum.blocks++;
    sum.bytes += size;
    sum.block = block;
    sum.size = size;
}

ty_status site_list::take(const site_table &sites) {
    size_t used = 0;
    for (uint32_t site = sites.first(); site < sites.end(); site = sites.next(site))
        used += sites.at(site).sum.blocks != 0;
    if (used == 0)
        return TY_OK;
    void *memory;
    if (ty_status status = os::map_memory(used * sizeof(ty_site_use), os::memory_hint::none, &memory))
        return status;
    mapped_bytes_ = used * sizeof(ty_site_use);
    uses_ = static_cast<ty_site_use *>(memory);
    for (uint32_t site = sites.first(); site < sites.end(); site = sites.next(site)) {
        const known_site &known = sites.at(site);
        const site_sum &sum = known.sum;
        if (sum.blocks != 0)
            uses_[count_++] = {sizeof(ty_site_use),
                               {known.frames, known.frame_count, sum.thread},
                               sum.blocks,
                               sum.bytes,
                               sum.block,
                               sum.size,
                               nullptr};
    }
    auto order = [](const ty_site_use &a, const ty_site_use &b) {
        return a.total_bytes != b.total_bytes ? a.total_bytes > b.total_bytes : a.block < b.block;
    };
    std::make_heap(uses_, uses_ + count_, order); // much less code than std::sort
    std::sort_heap(uses_, uses_ + count_, order);
    return TY_OK;
}

ty_status site_list::report(const char *state, ty_site_callback *callback, void *context) {
    void *memory;
    if (ty_status status = os::map_memory(finding_text_bytes, os::memory_hint::none, &memory))
        return status;
    bool more = true;
    for (size_t i = 0; i < count_ && more; i++) {
        text_writer text{static_cast<char *>(memory)};
        write_sum(text, uses_[i], state);
        uses_[i].text = text.text;
        more = callback(&uses_[i], context);
    }
    os::unmap_memory(memory, finding_text_bytes);
    return TY_OK;
}

} // namespace taiyen
