#include "log_buffer.hpp"

#include "../recovery/recovery.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t buffer_magic = 0x3172656666754279; // "yBuffer1"
constexpr uint64_t file_bytes = os::page_bytes + log_buffer_bytes;
constexpr const char *suffix = "-shared";

// The numbers that are held: who writes the log, then the processes' own.
constexpr uint64_t log_writers = 0, first_number = 1;

// All of it is on the disk, so that no store to it fails for want of room.
ty_status fill(const storage_file &file) {
    uint64_t size = 0;
    if (ty_status status = file.get_size(&size); status || size >= file_bytes)
        return status;
    if (ty_status status = file.set_size(file_bytes))
        return status;
    const ty_status status = file.allocate(0, file_bytes);
    if (status != TY_E_UNSUPPORTED)
        return status;
    io_page zeros;
    for (uint64_t at = 0; at < file_bytes; at += sizeof zeros.bytes)
        if (ty_status written = file.write(at, zeros.bytes, sizeof zeros.bytes))
            return written;
    return TY_OK;
}

ty_status open_file(storage_file &file, const char *path, const storage_file *create_like) {
    for (;;) {
        ty_status status = file.open(path, TY_FILE_WRITE);
        if (status != TY_E_NOT_FOUND || create_like == nullptr)
            return status;
        status = file.create_private(path);
        if (status == TY_E_EXISTS)
            continue;
        return status ? status : file.protect(*create_like);
    }
}

} // namespace

ty_status log_buffer::take_number() {
    uint64_t other = 0;
    for (uint32_t number = 0; number < sharers_max; ++number) {
        const ty_status status = file_.hold(TY_HOLD_EXCLUSIVE, first_number + number, first_number + number, &other);
        if (status == TY_E_BUSY)
            continue;
        number_ = number + 1;
        return status;
    }
    return failure(TY_E_BUSY, "share a heap: all %u numbers of processes are taken", sharers_max)
        .at(path_)
        .remedy("end some of them, or follow it (TY_OPEN_FOLLOW)");
}

ty_status log_buffer::open(const ty_storage &storage, const char *image_path, const storage_file *create_like) {
    if (!storage.hold)
        return failure(TY_E_UNSUPPORTED, "share a heap: its storage cannot hold numbers (ty_storage.hold)")
            .at(image_path)
            .remedy("open it in one process");
    if (!(path_ = path_with(image_path, suffix)))
        return TY_E_MEMORY;
    file_.storage = &storage;
    ty_status status = open_file(file_, path_, create_like);
    if (!status)
        status = create_like ? fill(file_) : TY_OK;
    // A number shows that the buffer is in use: so nobody has one of a buffer that was left behind.
    if (!status && !create_like && !has_log_writer())
        status =
            failure(TY_E_BUSY, "share a heap: no process writes its log at the moment").at(path_).remedy("try again");
    if (!status)
        status = take_number();
    // Whoever had it last may have removed it meanwhile.
    if (!status && !create_like && file_.check())
        status = TY_E_NOT_FOUND;
    uint64_t size = 0;
    if (!status && !(status = file_.get_size(&size)) && size < file_bytes)
        status = failure(TY_E_BUSY, "share a heap: it is being opened").at(path_).remedy("try again");
    if (!status)
        status = file_.map_anywhere(file_bytes, 0, TY_MAP_WRITE | TY_MAP_SHARED, &mapped_);
    if (status) {
        const ty_error error = keep_error();
        close();
        return report_again(error, status);
    }
    header_ = static_cast<log_buffer_header *>(mapped_);
    ring_ = static_cast<uint8_t *>(mapped_) + os::page_bytes;
    return TY_OK;
}

void log_buffer::close() {
    if (mapped_ != nullptr)
        (void)file_.unmap(mapped_, file_bytes);
    file_.close();
    free(path_);
    *this = {};
}

// All at once: a process that ends and one that joins meanwhile are not both missed.
ty_status log_buffer::others(bool *any) const {
    const uint64_t firsts[] = {first_number, first_number + number_};
    const uint64_t ends[] = {first_number + number_ - 1, first_number + sharers_max};
    uint64_t other = 0;
    ty_status status = TY_OK;
    for (int n = 0; n < 2 && !status; ++n)
        if (firsts[n] != ends[n])
            status = file_.hold(TY_HOLD_EXCLUSIVE, firsts[n], ends[n] - 1, &other);
    for (int n = 0; n < 2; ++n)
        if (firsts[n] != ends[n])
            (void)file_.hold(TY_HOLD_NONE, firsts[n], ends[n] - 1, &other);
    *any = status == TY_E_BUSY;
    return *any ? TY_OK : status;
}

void log_buffer::format(const uint8_t heap_identity[16], uint64_t lsn) {
    memset(mapped_, 0, os::page_bytes);
    log_buffer_header &h = *header_;
    h.ring_bytes = log_buffer_bytes;
    memcpy(h.heap_identity, heap_identity, sizeof h.heap_identity);
    h.durable.store(lsn, std::memory_order_relaxed);
    h.magic = buffer_magic;
}

ty_status log_buffer::check(const uint8_t heap_identity[16]) const {
    const log_buffer_header &h = *header_;
    if (h.magic == buffer_magic && h.ring_bytes == log_buffer_bytes &&
        memcmp(h.heap_identity, heap_identity, sizeof h.heap_identity) == 0 &&
        h.end.load(std::memory_order_relaxed) - h.released.load(std::memory_order_relaxed) <= log_buffer_bytes)
        return TY_OK;
    return failure(TY_E_BUSY, "share a heap: its log buffer is not made yet, or is of another version of the library")
        .at(path_)
        .remedy("try again; if that does not help, let all processes close the heap first");
}

// Whoever has the number for an instant only looks whether somebody has it.
ty_status log_buffer::become_log_writer() const {
    constexpr int tries_max = 1000;
    constexpr uint64_t pause_ns = 100'000;
    const std::atomic<uint32_t> nobody_wakes{0};
    uint64_t other = 0;
    for (int tries = 0;; ++tries) {
        const ty_status status = file_.hold(TY_HOLD_EXCLUSIVE, log_writers, log_writers, &other);
        if (status != TY_E_BUSY || tries == tries_max)
            return status;
        os::wait_on(nobody_wakes, 0, pause_ns);
    }
}

void log_buffer::resign() const {
    uint64_t other = 0;
    (void)file_.hold(TY_HOLD_NONE, log_writers, log_writers, &other);
}

bool log_buffer::has_log_writer() const {
    uint64_t other = 0;
    if (file_.hold(TY_HOLD_SHARED, log_writers, log_writers, &other) == TY_E_BUSY)
        return true;
    resign();
    return false;
}

bool log_buffer::take_if_gone(uint32_t number) const {
    uint64_t other = 0;
    if (number == number_ || number == 0 || number > sharers_max)
        return false;
    return file_.hold(TY_HOLD_SHARED, first_number + number - 1, first_number + number - 1, &other) == TY_OK;
}

void log_buffer::give_back(uint32_t number) const {
    uint64_t other = 0;
    (void)file_.hold(TY_HOLD_NONE, first_number + number - 1, first_number + number - 1, &other);
}

uint64_t log_buffer::free_bytes() const {
    const uint64_t used =
        header_->end.load(std::memory_order_relaxed) - header_->released.load(std::memory_order_acquire);
    return used < log_buffer_bytes ? log_buffer_bytes - used : 0;
}

uint8_t *log_buffer::append_begin(size_t bytes) {
    const uint64_t need = buffered_bytes(bytes);
    const uint64_t end = header_->end.load(std::memory_order_relaxed);
    const uint64_t left = log_buffer_bytes - end % log_buffer_bytes;
    place_ = left < need ? end + left : end;
    // PR2: said before a byte is overwritten.
    const uint64_t before = header_->begun.load(std::memory_order_relaxed); // a longer one may have been given up
    (void)header_->begun.exchange(fault("overwrites_the_log_buffer_without_a_word") ? 0
                                                                                    : std::max(before, place_ + need));
    if (place_ != end) {
        const buffered_record skip{0, buffered_kind::to_the_front, 0};
        memcpy(ring_ + end % log_buffer_bytes, &skip, sizeof skip);
    }
    return ring_ + place_ % log_buffer_bytes + buffered_head_bytes;
}

void log_buffer::append_end(size_t bytes, uint64_t lsn) {
    if (bytes == 0)
        return;
    const buffered_record head{static_cast<uint32_t>(bytes), buffered_kind::record, lsn};
    memcpy(ring_ + place_ % log_buffer_bytes, &head, sizeof head);
    header_->end.store(place_ + buffered_bytes(bytes), std::memory_order_seq_cst);
}

// What a process of another kind, or a broken disk, has left there is not believed.
ty_status log_buffer::look(uint64_t *position, buffered_record *record) const {
    const uint64_t end = header_->end.load(std::memory_order_acquire);
    for (int times = 0; times < 2 && *position != end; ++times) {
        memcpy(record, bytes_at(*position), sizeof *record);
        if (record->kind != buffered_kind::to_the_front) {
            const uint64_t left = log_buffer_bytes - *position % log_buffer_bytes - buffered_head_bytes;
            return record->kind == buffered_kind::record && record->bytes <= left && after(*position, *record) <= end
                       ? TY_OK
                       : damaged();
        }
        *position += log_buffer_bytes - *position % log_buffer_bytes;
    }
    return *position == end ? TY_E_NOT_FOUND : damaged();
}

ty_status log_buffer::damaged() const {
    return failure(TY_E_DAMAGED, "take over what another process committed: that is not in the log buffer")
        .at(path_)
        .remedy("close the heap in all processes, and open it again");
}

bool log_buffer::still_there(uint64_t position) const {
    // A read-modify-write, so that what was read before is not read after it.
    return header_->begun.fetch_add(0, std::memory_order_acq_rel) <= position + log_buffer_bytes;
}

ty_status check_not_shared(const ty_storage &storage, const char *image_path, ty_status refusal, const char *call) {
    if (!storage.hold)
        return TY_OK;
    char *path = path_with(image_path, suffix);
    if (!path)
        return TY_E_MEMORY;
    storage_file file{&storage};
    uint64_t other = 0;
    ty_status status = file.open(path, TY_FILE_WRITE);
    if (status == TY_E_NOT_FOUND) {
        status = TY_OK;
    } else if (!status) {
        status = file.hold(TY_HOLD_EXCLUSIVE, first_number, first_number + sharers_max - 1, &other);
        if (!status)
            file.remove_quietly(path); // whoever is about to join finds that it has no name
        file.close();
        if (status == TY_E_BUSY)
            status = others_share(refusal, call, image_path);
    }
    free(path);
    return status;
}

} // namespace taiyen
