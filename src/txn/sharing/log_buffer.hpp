// The log buffer of a heap that several processes write to: a ring of records in memory that they share, a file beside
// the heap. Who holds the writer lock appends; the process that writes the log takes records from here to the log, and
// all others apply them to their memory. docs/design/sharing.md has the whole.
//
// PR1: a record's bytes stay until it is durable in the log. So if the process that writes the log dies, another one
//      finds in log and buffer all that was committed, in order.
// PR2: a reader that was overtaken knows: an appender says how far it is about to write before it does.
#pragma once

#include "../transactions/transactions.hpp"

#include <atomic>

namespace taiyen {

inline constexpr uint64_t log_buffer_bytes = uint64_t{8} << 20;
inline constexpr uint64_t log_buffer_record_max = log_buffer_bytes / 4;
inline constexpr uint32_t sharers_max = 1023; // processes

// At the file's front. Positions count bytes since the buffer was made; a position's place is its remainder.
struct log_buffer_header {
    uint64_t magic;
    uint64_t ring_bytes;
    uint8_t heap_identity[16];

    // The writer lock: the number of the process that has it, and whether others wait; 0: free.
    alignas(64) std::atomic<uint32_t> owner;
    std::atomic<uint32_t> heir; // who gets it next, as it has waited for long; 0: whoever comes

    alignas(64) std::atomic<uint64_t> begun; // before this position, less the ring's size, bytes may be overwritten
    std::atomic<uint64_t> end;               // of the newest record

    alignas(64) std::atomic<uint64_t> released; // position: all records before it are durable
    std::atomic<uint64_t> record_max;           // of a record's bytes
    std::atomic<uint64_t> durable;              // LSN
    std::atomic<uint32_t> durable_changes;      // changes with it, and with failures; waited for
    std::atomic<uint32_t> durable_waiters;
    std::atomic<uint32_t> failures; // times that the log could not be written
    std::atomic<uint32_t> failure;  // the status of the last one

    alignas(64) std::atomic<uint32_t> bell; // changes when the log's writer is woken
    std::atomic<uint32_t> sleeps;           // how it does; sleep_depth
    std::atomic<uint64_t> wanted;           // LSN: somebody waits until it is durable
};
static_assert(sizeof(log_buffer_header) <= os::page_bytes);

enum class sleep_depth : uint32_t { awake, gathers, rests };

enum class buffered_kind : uint32_t {
    record = 1,
    to_the_front = 2, // the ring goes on at its front
};

struct buffered_record {
    uint32_t bytes; // after this head
    buffered_kind kind;
    uint64_t lsn;
};
inline constexpr uint64_t buffered_head_bytes = sizeof(buffered_record);
// With its head, to where the next one begins.
constexpr uint64_t buffered_bytes(uint64_t bytes) {
    return buffered_head_bytes + (bytes + buffered_head_bytes - 1) / buffered_head_bytes * buffered_head_bytes;
}
inline uint64_t after(uint64_t position, const buffered_record &record) {
    return position + buffered_bytes(record.bytes);
}

class log_buffer {
public:
    // Opens the file beside a heap's image. The number that this process has from then on is its own; TY_E_NOT_FOUND:
    // there is no file. TY_E_BUSY: nobody writes the log. create_like: makes one if there is none, for the process that
    // will write the log. image_path: as resolve_path returns it.
    ty_status open(const ty_storage &storage, const char *image_path, const storage_file *create_like);
    void close();
    bool is_open() const { return header_ != nullptr; }
    log_buffer_header &header() const { return *header_; }
    uint32_t number() const { return number_; } // of this process, from 1 on

    // Whether no other process has it open. For the process that has locked the heap's image.
    ty_status others(bool *any) const;
    // Makes it empty, after the log's last record. Nobody else has it open.
    void format(const uint8_t heap_identity[16], uint64_t lsn);
    ty_status check(const uint8_t heap_identity[16]) const; // TY_E_BUSY: it is not made yet

    // Who writes the log holds a number of its own.
    ty_status become_log_writer() const;
    void resign() const;
    bool has_log_writer() const;
    // Whether the process that had this number is gone: then nobody gets it until give_back().
    bool take_if_gone(uint32_t number) const;
    void give_back(uint32_t number) const;

    // ---- With the writer lock held

    uint64_t free_bytes() const;
    // Room for one record of at most so many bytes, up to log_buffer_record_max, which free_bytes() has.
    uint8_t *append_begin(size_t bytes);
    void append_end(size_t bytes, uint64_t lsn); // 0 bytes: no record

    // ---- Any process

    // The record at *position, or at the ring's front if that follows; moves *position to it. TY_E_NOT_FOUND, without a
    // detail: there is none yet. Expected: TY_E_DAMAGED.
    ty_status look(uint64_t *position, buffered_record *record) const;
    ty_status damaged() const;
    const uint8_t *bytes_at(uint64_t position) const { return ring_ + position % log_buffer_bytes; }
    // PR2: whether what was read from this position on is what was there.
    bool still_there(uint64_t position) const;

private:
    ty_status take_number();

    storage_file file_{};
    char *path_ = nullptr;
    void *mapped_ = nullptr;
    log_buffer_header *header_ = nullptr;
    uint8_t *ring_ = nullptr;
    uint32_t number_ = 0;
    uint64_t place_ = 0; // of the record that is being appended
};

} // namespace taiyen
