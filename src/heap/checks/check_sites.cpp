#include "check_sites.hpp"

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

} // namespace taiyen
