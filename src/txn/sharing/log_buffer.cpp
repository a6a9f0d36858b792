#include "log_buffer.hpp"

#include "../recovery/recovery.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t buffer_magic = 0x3172656666754279; // "yBuffer1"
constexpr uint64_t file_bytes = os::page_bytes + log_buffer_bytes;
constexpr const char *suffix = "-shared";

// The numbers that are held: who writes the log, then the processes' own.
constexpr uint64_t log_writers = 0, first_number = 1;

// A place for the mapping: the storage maps at an address, never over what is there.
ty_status map(const storage_file &file, void **mapped) {
    constexpr int tries_max = 8;
    ty_status status = TY_OK;
    for (int tries = 0; tries < tries_max; ++tries) {
        void *place = nullptr;
        if ((status = os::map_memory(file_bytes, os::memory_hint::none, &place)))
            return status;
        os::unmap_memory(place, file_bytes);
        status = file.map(place, file_bytes, 0, TY_MAP_WRITE | TY_MAP_SHARED);
        if (!status)
            *mapped = place;
        if (status != TY_E_ADDRESS) // another thread was faster
            return status;
    }
    return status;
}

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
    return failure(TY_E_BUSY, "share a heap with %u other processes", sharers_max)
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
    if (!status)
        status = take_number();
    // Whoever had it last may have removed it meanwhile.
    if (!status && !create_like && file_.check())
        status = TY_E_NOT_FOUND;
    uint64_t size = 0;
    if (!status && !(status = file_.get_size(&size)) && size < file_bytes)
        status = failure(TY_E_BUSY, "share a heap: it is being opened").at(path_).remedy("try again");
    if (!status)
        status = map(file_, &mapped_);
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

ty_status log_buffer::others(bool *any) const {
    uint64_t other = 0;
    *any = false;
    for (const bool below : {true, false}) {
        const uint64_t first = below ? first_number : first_number + number_;
        const uint64_t end = below ? first_number + number_ - 1 : first_number + sharers_max;
        if (first == end)
            continue;
        const ty_status status = file_.hold(TY_HOLD_EXCLUSIVE, first, end - 1, &other);
        if (status == TY_E_BUSY)
            *any = true;
        else if (status)
            return status;
        else
            (void)file_.hold(TY_HOLD_NONE, first, end - 1, &other);
    }
    return TY_OK;
}

void log_buffer::format(const uint8_t heap_identity[16], uint64_t log_identity, uint64_t lsn) {
    memset(mapped_, 0, os::page_bytes);
    log_buffer_header &h = *header_;
    h.ring_bytes = log_buffer_bytes;
    memcpy(h.heap_identity, heap_identity, sizeof h.heap_identity);
    h.log_identity = log_identity;
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

bool log_buffer::is_gone(uint32_t number) const {
    uint64_t other = 0;
    if (number == number_ || number == 0 || number > sharers_max)
        return number > sharers_max;
    if (file_.hold(TY_HOLD_SHARED, first_number + number - 1, first_number + number - 1, &other))
        return false;
    (void)file_.hold(TY_HOLD_NONE, first_number + number - 1, first_number + number - 1, &other);
    return true;
}

uint64_t log_buffer::free_bytes() const {
    const uint64_t used =
        header_->end.load(std::memory_order_relaxed) - header_->released.load(std::memory_order_acquire);
    return used < log_buffer_bytes ? log_buffer_bytes - used : 0;
}

uint8_t *log_buffer::append_begin(size_t bytes) {
    const uint64_t need =
        buffered_head_bytes + (bytes + buffered_head_bytes - 1) / buffered_head_bytes * buffered_head_bytes;
    const uint64_t end = header_->end.load(std::memory_order_relaxed);
    const uint64_t left = log_buffer_bytes - end % log_buffer_bytes;
    place_ = left < need ? end + left : end;
    // PR2: said before a byte is overwritten.
    header_->begun.store(fault("overwrites_the_log_buffer_without_a_word") ? 0 : place_ + need,
                         std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (place_ != end) {
        const buffered_record skip{0, buffered_kind::to_the_front, 0};
        memcpy(ring_ + end % log_buffer_bytes, &skip, sizeof skip);
    }
    return ring_ + place_ % log_buffer_bytes + buffered_head_bytes;
}

void log_buffer::append_end(size_t bytes, uint64_t lsn, buffered_kind kind) {
    if (bytes == 0 && kind == buffered_kind::record)
        return;
    const buffered_record head{static_cast<uint32_t>(bytes), kind, lsn};
    memcpy(ring_ + place_ % log_buffer_bytes, &head, sizeof head);
    const uint64_t padded = (bytes + buffered_head_bytes - 1) / buffered_head_bytes * buffered_head_bytes;
    header_->end.store(place_ + buffered_head_bytes + padded, std::memory_order_seq_cst);
}

bool log_buffer::look(uint64_t *position, buffered_record *record) const {
    const uint64_t end = header_->end.load(std::memory_order_acquire);
    if (*position == end)
        return false;
    memcpy(record, bytes_at(*position), sizeof *record);
    if (record->kind != buffered_kind::to_the_front)
        return true;
    *position += log_buffer_bytes - *position % log_buffer_bytes;
    memcpy(record, bytes_at(*position), sizeof *record);
    return true;
}

bool log_buffer::still_there(uint64_t position) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return header_->begun.load(std::memory_order_relaxed) <= position + log_buffer_bytes;
}

ty_status check_not_shared(const ty_storage &storage, const char *image_path) {
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
            status = failure(TY_E_BUSY, "open a heap for this process alone: others share it")
                         .at(image_path)
                         .remedy("open it with the option shared, or let them close it first");
    }
    free(path);
    return status;
}

} // namespace taiyen
