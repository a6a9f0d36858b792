// The header of a log: checked at every open, and written by each writing open.
#include "frame.hpp"

#include <cstring>

namespace taiyen {
namespace {

uint64_t header_checksum(const log_header &header) {
    return checksum(&header, offsetof(log_header, checksum));
}

uint64_t header_blocks(uint32_t block_bytes) {
    return (sizeof(log_header) + block_bytes - 1) / block_bytes * block_bytes;
}

bool is_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

// A valid checksum only says that the bytes are as written, not that a sane program wrote them.
bool streams_possible(const log_header &header) {
    const uint32_t count = header.streams;
    return count >= 1 && count <= log_streams_max && header.ring_bytes / header.block_bytes % count == 0 &&
           header.ring_bytes / count >= log_ring_bytes_min;
}

bool geometry_possible(const log_header &header) {
    uint64_t block = header.block_bytes;
    return is_power_of_two(block) && block >= log_block_bytes_min && block <= log_block_bytes_max &&
           header.ring_offset == header_slots * header_blocks(header.block_bytes) && header.ring_bytes % block == 0 &&
           header.ring_bytes >= log_ring_bytes_min && header.ring_bytes <= INT64_MAX - header.ring_offset &&
           header.log_identity != 0 && streams_possible(header);
}

bool is_valid(const log_header &header) {
    return header.magic == log_magic && header.version == format_version && !header.features_incompatible &&
           header.checksum == header_checksum(header) && geometry_possible(header);
}

// No slot is valid; the first one shows why.
ty_status refuse_unreadable(const log_header &header, const char *name) {
    if (header.magic != log_magic)
        return failure(TY_E_FORMAT, "read the log: it is not a log of Taiyen").at(name, 0).remedy("check the path");
    if (header.version != format_version || header.features_incompatible)
        return failure(TY_E_FORMAT, "read the log: it is of version %u, features %llx", header.version,
                       (unsigned long long)header.features_incompatible)
            .at(name, 0)
            .remedy("use the version of the library that made it, or a newer one");
    return failure(TY_E_DAMAGED, "read the log: its header is damaged")
        .at(name, 0)
        .remedy("restore the heap's files from a backup");
}

ty_status check_header(const log_header &header, const ty_log_sink &sink, const char *name) {
    if (header.number > counter_max || header.open.number > counter_max)
        return failure(TY_E_DAMAGED, "read the log: its header's numbers are impossible")
            .at(name, 0)
            .remedy("restore the heap's files from a backup");
    if (header.ring_offset + header.ring_bytes > sink.size_bytes)
        return failure(TY_E_DAMAGED, "read the log: it was cut to %llu byte%s", (unsigned long long)sink.size_bytes,
                       plural(sink.size_bytes))
            .at(name, sink.size_bytes)
            .remedy("restore the heap's files from a backup");
    if (header.block_bytes % sink.block_bytes)
        return failure(TY_E_MISMATCH, "use the log: its blocks of %u bytes are smaller than the sink's of %u",
                       header.block_bytes, sink.block_bytes)
            .at(name, 0)
            .remedy("use a sink with blocks as small as those of the sink it was made on");
    return TY_OK;
}

// The content of the two slots.
struct both_slots {
    log_header slots[header_slots]{};
    bool valid[header_slots]{};
    uint32_t newest = header_slots; // header_slots: none is valid
    uint64_t distance = 0;          // from the first to the second

    bool any() const { return newest != header_slots; }
};

ty_status read_slot(const ty_log_sink &sink, uint64_t offset, const io_buffer &buffer, log_header *header) {
    uint64_t bytes = header_blocks(sink.block_bytes);
    *header = {};
    if (offset + bytes > sink.size_bytes)
        return TY_OK;
    if (ty_status status = os::call_whole(sink.read, sink.context, offset, buffer.data(), bytes))
        return status;
    memcpy(header, buffer.data(), sizeof *header);
    return TY_OK;
}

// The first slot says where the second one is; if the first is torn, the second is searched for.
ty_status read_slots(const ty_log_sink &sink, const io_buffer &buffer, both_slots *found) {
    if (ty_status status = read_slot(sink, 0, buffer, &found->slots[0]))
        return status;
    found->valid[0] = is_valid(found->slots[0]);
    const uint32_t known = found->valid[0] ? found->slots[0].block_bytes : 0;
    if (known % sink.block_bytes) // a sink that cannot read it
        return (found->newest = 0, TY_OK);
    for (uint32_t block = known ? known : sink.block_bytes; block <= log_block_bytes_max; block *= 2) {
        log_header &second = found->slots[1];
        if (ty_status status = read_slot(sink, header_blocks(block), buffer, &second))
            return status;
        found->valid[1] = is_valid(second) && second.block_bytes == block;
        found->distance = header_blocks(block);
        if (known || found->valid[1])
            break;
    }
    found->newest = newest_slot([found](uint32_t n) { return found->valid[n] ? found->slots[n].number : 0; });
    return TY_OK;
}

ty_status read_slots(const ty_log_sink &sink, both_slots *found) {
    io_buffer buffer;
    if (ty_status status = buffer.create(log_block_bytes_max))
        return status;
    return read_slots(sink, buffer, found);
}

ty_status write_slot(const ty_log_sink &sink, const io_buffer &buffer, uint64_t offset, log_header header) {
    memset(buffer.data(), 0, header_blocks(header.block_bytes));
    header.checksum = header_checksum(header);
    memcpy(buffer.data(), &header, sizeof header);
    return os::call_whole(sink.write, sink.context, offset, buffer.data(), header_blocks(header.block_bytes));
}

ty_status check_identity(const log_header &header, const log_identity &identity, const char *name) {
    const bool same_heap = !memcmp(header.heap_identity, identity.heap, sizeof identity.heap);
    if (same_heap && header.log_identity == identity.log)
        return TY_OK;
    return failure(TY_E_MISMATCH, "use the log: it is %s", same_heap ? "another log of this heap" : "of another heap")
        .at(name, 0)
        .remedy("give the log that belongs to the heap");
}

} // namespace

uint64_t log_bytes_min(uint32_t block_bytes, uint32_t streams) {
    return header_slots * header_blocks(block_bytes) + streams * log_ring_bytes_min;
}

ty_status log_format(const ty_log_sink &sink, const log_identity &identity, const open_identity &open,
                     uint32_t streams) {
    const uint64_t least = log_bytes_min(sink.block_bytes, streams);
    if (sink.size_bytes < least)
        return failure(TY_E_ARGUMENT, "make a log of %u log stream%s in %llu bytes", streams, plural(streams),
                       (unsigned long long)sink.size_bytes)
            .remedy("it takes %llu bytes at the least", (unsigned long long)least);
    log_header header{};
    header.magic = log_magic;
    header.version = format_version;
    header.block_bytes = sink.block_bytes;
    memcpy(header.heap_identity, identity.heap, sizeof identity.heap);
    header.log_identity = identity.log;
    header.ring_offset = header_slots * header_blocks(sink.block_bytes);
    const uint64_t unit = uint64_t{streams} * sink.block_bytes;
    header.ring_bytes = (sink.size_bytes - header.ring_offset) / unit * unit;
    header.created_unix_s = os::unix_time_s();
    header.number = 1;
    header.open = open;
    header.streams = streams;
    io_buffer buffer;
    if (ty_status status = buffer.create(log_block_bytes_max))
        return status;
    for (uint32_t i = header_slots; i-- > 0;) // the first one last: without it there is no log
        if (ty_status status = write_slot(sink, buffer, i * header_blocks(sink.block_bytes), header))
            return status;
    return TY_OK;
}

ty_status log_check(const ty_log_sink &sink, const char *name, const log_identity *identity, log_header *found) {
    if (!is_power_of_two(sink.block_bytes) || sink.block_bytes < log_block_bytes_min ||
        sink.block_bytes > log_block_bytes_max || sink.size_bytes < header_blocks(sink.block_bytes))
        return failure(TY_E_DAMAGED, "read the log: %llu byte%s in blocks of %u hold none",
                       (unsigned long long)sink.size_bytes, plural(sink.size_bytes), sink.block_bytes)
            .at(name);
    both_slots there;
    if (ty_status status = read_slots(sink, &there))
        return status;
    const log_header &header = there.slots[there.any() ? there.newest : 0];
    if (found)
        *found = header;
    if (!there.any())
        return refuse_unreadable(header, name);
    if (ty_status status = check_header(header, sink, name))
        return status;
    return identity ? check_identity(header, *identity, name) : TY_OK;
}

bool log_half_damaged(const ty_log_sink &sink) {
    both_slots there;
    return read_slots(sink, &there) == TY_OK && there.any() && there.valid[0] != there.valid[1];
}

ty_status log_name_open(const ty_log_sink &sink, const char *name, const log_identity &identity,
                        const open_identity &previous, const open_identity &open, const io_buffer &buffer) {
    both_slots there;
    if (ty_status status = read_slots(sink, buffer, &there))
        return status;
    log_header header = there.slots[there.any() ? there.newest : 0];
    if (ty_status status = there.any() ? check_identity(header, identity, name) : refuse_unreadable(header, name))
        return status;
    const uint32_t other = 1 - there.newest;
    const bool other_would_do = there.valid[other] && names_open(there.slots[other], previous);
    header.number += 1;
    header.open = open;
    header.previous = previous;
    const uint32_t slot = slot_to_write(there.newest, other_would_do || fault("newest_log_header_overwritten"));
    return write_slot(sink, buffer, slot * there.distance, header); // L7: over the older header
}

} // namespace taiyen
