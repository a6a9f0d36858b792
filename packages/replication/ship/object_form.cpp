#include "object_form.hpp"

#include <cstdio>
#include <cstring>
#include <taiyen/storage.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen::ship {

uint64_t checksum_of(const object_header &header) {
    return XXH3_64bits(&header, offsetof(object_header, checksum));
}

uint64_t checksum_of(const frame_header &header, const void *stored, uint64_t log) {
    const uint64_t seed = XXH3_64bits_withSeed(&header, offsetof(frame_header, checksum), log);
    return XXH3_64bits_withSeed(stored, header.stored_bytes, seed);
}

std::string name_of(const object_header &header) {
    char name[64];
    if (header.kind == uint32_t(object_kind::base))
        return base_name(header.from.lsn);
    snprintf(name, sizeof name, "segment-%016llx-%016llx", static_cast<unsigned long long>(header.from.lsn + 1),
             static_cast<unsigned long long>(header.to.lsn));
    return name;
}

std::string base_name(uint64_t lsn) {
    char name[64];
    snprintf(name, sizeof name, "base-%016llx", static_cast<unsigned long long>(lsn));
    return name;
}

bool segment_range(const std::string &name, uint64_t *first, uint64_t *last) {
    unsigned long long from = 0, to = 0;
    int length = 0;
    if (sscanf(name.c_str(), "segment-%16llx-%16llx%n", &from, &to, &length) != 2 || size_t(length) != name.size())
        return false;
    *first = from;
    *last = to;
    return true;
}

bool is_object_name(const std::string &name) {
    return name.rfind("base-", 0) == 0 || name.rfind("segment-", 0) == 0;
}

namespace {

const char *wrong_field(const object_header &h) {
    const bool base = h.kind == uint32_t(object_kind::base);
    if (!base && h.kind != uint32_t(object_kind::segment))
        return "kind";
    if (h.from.lsn > counter_max || h.to.lsn > counter_max || h.timeline_lsn > h.from.lsn)
        return "lsn";
    if (base ? h.to.lsn != h.from.lsn || h.records || h.frames || h.stored_bytes
             : h.to.lsn - h.from.lsn != h.records || h.records == 0 || h.to.lsn < h.from.lsn)
        return "number of records";
    if (!base && (h.frames == 0 || h.frames > h.records || h.raw_bytes > counter_max || h.stored_bytes > counter_max))
        return "number of frames or bytes";
    if (h.after_base > counter_max || h.floor > h.from.lsn || (!base && h.floor))
        return "base before it";
    if (h.timeline_after > h.timeline_lsn + 1)
        return "end of the timeline before";
    if (h.first_ns > h.last_ns)
        return "time";
    if (memcmp(h.from.heap_identity, h.to.heap_identity, sizeof h.to.heap_identity) ||
        h.from.log_identity != h.to.log_identity)
        return "identity";
    return nullptr;
}

} // namespace

ty_status check_header(const object_header &header, const std::string &name) {
    if (header.magic != object_magic)
        return fail(TY_E_FORMAT, "read an object: a shipper has not made it", name, "take it away from there");
    if (header.version != object_version)
        return fail(TY_E_FORMAT, "read an object of a version that this library does not know", name,
                    "use a newer version of the library");
    if (header.checksum != checksum_of(header))
        return fail(TY_E_DAMAGED, "read an object: its header is damaged", name, "get it from another copy");
    if (const char *field = wrong_field(header))
        return fail(TY_E_DAMAGED, std::string("read an object: its ") + field + " is impossible", name,
                    "get it from another copy");
    if (name_of(header) != name)
        return fail(TY_E_DAMAGED, "read an object: it is " + name_of(header), name,
                    "it was renamed, or exchanged with another one: give it its own name");
    return TY_OK;
}

} // namespace taiyen::ship
