// A heap that several processes write to, one at a time: what each of them knows. docs/design/sharing.md.
#pragma once

#include "../recovery/recovery.hpp"
#include "../transactions/transactions.hpp"
#include "writer_lock.hpp"

namespace taiyen {

struct sharing {
    explicit sharing(txn_runtime &of) : rt(of) {}

    txn_runtime &rt;
    ty_open_options options{}; // for an open for writing; its texts are these
    ty_reader_lock reader_lock{};
    char *texts[3] = {}; // path of the image, of journal and log: NULL, where the options give none
    log_buffer buffer;
    writer_lock lock{buffer};
    fair_rwlock queue; // of threads that want the writer lock; as one for writers alone

    std::atomic<uint64_t> applied{0};    // LSN; memory has all up to it. Changes with the reader-writer lock held
    std::atomic<uint64_t> position{0};   // in the buffer, after its record; likewise
    char *piece = nullptr;               // copied from the buffer
    step_batches batches;                // one
    unsigned memory_changes = 0;         // nested; guarded by the reader-writer lock
    std::atomic<bool> reads_lost{false}; // with a reader lock: they may have been of a mixture

    std::atomic<bool> writes_log{false}; // from then on until the heap is closed
    os::mutex logging{os::lock_rank::log_buffers};
    uint64_t logged = 0; // position, guarded by logging

    os::thread thread;
    bool has_thread = false;
    std::atomic<uint32_t> stops{0};
};

inline constexpr uint64_t poll_others_ns = 20'000'000;

// While it lives, no thread has the program's lock, under which it reads. With the reader-writer lock held, which comes
// first: a thread that has the program's lock does not wait for that one.
class memory_change {
public:
    explicit memory_change(sharing &s) : s_(s) {
        if (s.memory_changes++ == 0 && s.reader_lock.lock != nullptr)
            s.reader_lock.lock(s.reader_lock.context);
    }
    ~memory_change() {
        if (--s_.memory_changes == 0 && s_.reader_lock.unlock != nullptr)
            s_.reader_lock.unlock(s_.reader_lock.context);
    }
    memory_change(const memory_change &) = delete;
    memory_change &operator=(const memory_change &) = delete;

private:
    sharing &s_;
};

// ---- sharing.cpp

ty_status sharing_create(const heap_opening &state, txn_runtime &rt, const storage_file *create_like);
// Applies what the buffer holds after `position`. With the reader-writer lock held. Expected: TY_E_EXPIRED: only the
// files have it.
ty_status apply_newer(sharing &s);
// Wakes the log's writer, if it sleeps like that or deeper.
void ring(log_buffer_header &header, sleep_depth from);

// ---- log_writer.cpp

ty_status sharing_start_thread(sharing &s);
// Takes records to the log, up to this position. Under `logging`. TY_E_SPACE: the log is full.
ty_status log_buffered(sharing &s, uint64_t end);
void publish_durable(sharing &s); // under `logging`
ty_status write_until_durable(sharing &s, uint64_t lsn);

} // namespace taiyen
