// The header of a log: made once, checked at every open.
#include "frame.hpp"

#include <cstring>

namespace taiyen {
namespace {

uint64_t header_checksum(const log_header_1 &header) {
    return checksum(&header, offsetof(log_header_1, checksum));
}

uint64_t header_blocks(uint32_t block_bytes) {
    return (sizeof(log_header_1) + block_bytes - 1) / block_bytes * block_bytes;
}

bool is_power_of_two(uint64_t n) {
    return n && !(n & (n - 1));
}

// A valid checksum only says that the bytes are as written, not that a sane program wrote them.
bool geometry_possible(const log_header_1 &header) {
    uint64_t block = header.block_bytes;
    return is_power_of_two(block) && block >= log_block_bytes_min_1 && block <= log_block_bytes_max_1 &&
           header.ring_offset == header_blocks(header.block_bytes) && header.ring_bytes % block == 0 &&
           header.ring_bytes >= log_ring_bytes_min_1 && header.ring_bytes <= INT64_MAX - header.ring_offset &&
           header.log_identity != 0;
}

ty_status check_header(const log_header_1 &header, const ty_log_sink &sink, const char *name) {
    if (header.magic != log_magic_1)
        return failure(TY_E_FORMAT, "read the log: it is not a log of Taiyen").at(name, 0).remedy("check the path");
    if (header.version != log_version_1 || header.features_incompatible)
        return failure(TY_E_FORMAT, "read the log: it is of version %u, features %llx", header.version,
                       (unsigned long long)header.features_incompatible)
            .at(name, 0)
            .remedy("use the version of the library that made it, or a newer one");
    if (header.checksum != header_checksum(header) || !geometry_possible(header))
        return failure(TY_E_DAMAGED, "read the log: its header is damaged")
            .at(name, 0)
            .remedy("restore the heap's files from a backup");
    if (header.ring_offset + header.ring_bytes > sink.size_bytes)
        return failure(TY_E_DAMAGED, "read the log: it was cut to %llu bytes", (unsigned long long)sink.size_bytes)
            .at(name, sink.size_bytes)
            .remedy("restore the heap's files from a backup");
    if (header.block_bytes % sink.block_bytes)
        return failure(TY_E_MISMATCH, "use the log: its blocks of %u bytes are smaller than the sink's of %u",
                       header.block_bytes, sink.block_bytes)
            .at(name, 0)
            .remedy("use a sink with blocks as small as those of the sink it was made on");
    return TY_OK;
}

ty_status check_identity(const log_header_1 &header, const log_identity &identity, const char *name) {
    const bool same_heap = !memcmp(header.heap_identity, identity.heap, sizeof identity.heap);
    if (same_heap && header.log_identity == identity.log)
        return TY_OK;
    return failure(TY_E_MISMATCH, "use the log: it is %s", same_heap ? "another log of this heap" : "of another heap")
        .at(name, 0)
        .remedy("give the log that belongs to the heap");
}

} // namespace

ty_status log_format(const ty_log_sink &sink, const log_identity &identity) {
    io_buffer buffer;
    if (ty_status status = buffer.create(log_block_bytes_max_1))
        return status;
    log_header_1 header{};
    header.magic = log_magic_1;
    header.version = log_version_1;
    header.block_bytes = sink.block_bytes;
    memcpy(header.heap_identity, identity.heap, sizeof identity.heap);
    header.log_identity = identity.log;
    header.ring_offset = header_blocks(sink.block_bytes);
    header.ring_bytes = (sink.size_bytes - header.ring_offset) / sink.block_bytes * sink.block_bytes;
    header.created_unix_s = os::unix_time_s();
    header.checksum = header_checksum(header);
    memcpy(buffer.data(), &header, sizeof header);
    return sink.write(sink.context, 0, buffer.data(), header.ring_offset);
}

ty_status log_check(const ty_log_sink &sink, const char *name, const log_identity *identity, log_header_1 *found) {
    if (!is_power_of_two(sink.block_bytes) || sink.block_bytes < log_block_bytes_min_1 ||
        sink.block_bytes > log_block_bytes_max_1 || sink.size_bytes < header_blocks(sink.block_bytes))
        return failure(TY_E_DAMAGED, "read the log: %llu bytes in blocks of %u hold none",
                       (unsigned long long)sink.size_bytes, sink.block_bytes)
            .at(name);
    io_buffer buffer;
    if (ty_status status = buffer.create(log_block_bytes_max_1))
        return status;
    if (ty_status status = sink.read(sink.context, 0, buffer.data(), header_blocks(sink.block_bytes)))
        return status;
    log_header_1 header;
    memcpy(&header, buffer.data(), sizeof header);
    if (ty_status status = check_header(header, sink, name))
        return status;
    if (found)
        *found = header;
    return identity ? check_identity(header, *identity, name) : TY_OK;
}

} // namespace taiyen
