// Inside a log: its rings. In a ring, appended records gather in frames in memory; a thread that wants a record durable
// writes the frame that holds it.
//
//   gathering --(full, wanted, or a redo point)--> sealed --write_next--> writing --end_write--> written
//   --advance_durable--> free
//
// Frames are numbered; frame n lies in slot n % slot_count. [oldest, next_write) are being written, or written while an
// older one is not; [next_write, end) are sealed, the last of them perhaps gathering.
//
// A thread waits on the word of its frame's slot, which changes when the frame is durable, when a thread that waits for
// it must write, and when the log breaks. Whether a record is durable is read without the lock.
//
// ring_append.cpp gathers, ring_write.cpp writes, waits and wakes, ring.cpp creates, ends, and frees space.
// all_rings.cpp has the operations on all rings of a log. A thread holds one of their locks at a time.
#pragma once

#include "../frames/frames.hpp"
#include "wait_word.hpp"

#include <atomic>

namespace taiyen {

// L6 (a crash is not taken for damage) rests on the first: the most frames begun and not known to be durable. Only a
// frame that can take no more is written beside another: the fewer frames, the more each holds (log.md). While so many
// are in flight, another one can gather, even across the ring's end: one that is sealed there, the start of a
// generation, and the one after it.
constexpr uint64_t writes_in_flight_max = frames_unstable;
constexpr unsigned slot_count = frames_unstable + 3;

enum class room_limit : uint8_t { buffer, ring_end, free_space };
enum class frame_state : uint8_t { gathering, sealed, writing, written };

struct slot {
    uint8_t *memory;
    frame_state state;
    bool generation_start;
    bool waited;          // a thread may wait for it
    uint32_t committers;  // threads that wanted it durable
    uint32_t payload;     // bytes so far
    uint32_t payload_max; // that buffer and ring have room for
    room_limit limit;     // what limits payload_max
    uint64_t generation;
    uint64_t from;
    uint64_t end; // offset; once it is sealed
    uint64_t first_lsn;
    uint64_t last_lsn; // of the last record in it; 0: none
    wait_word changed;
};

// What recovery believed and does not know to be durable (L4): records with their lengths, to be appended first.
struct repeated_records {
    os::array<uint8_t> bytes;
    size_t done = 0;
    uint64_t last = 0; // LSN of the last one
};

// L10: an idle ring of several delays no commit.
inline constexpr uint64_t nothing_pending = UINT64_MAX;

struct alignas(64) log_ring {
    // Constant.
    log *all; // the log of the ring
    bool one_of_many;
    uint64_t identity; // ring_identity
    ring_geometry geometry;
    uint8_t *memory;
    bool has_thread;
    os::thread thread;

    os::mutex lock{os::lock_rank::log}; // guards all that follows, except what is atomic
    slot slots[slot_count];
    slot *gathering = nullptr; // the newest one, if it is not sealed
    uint64_t oldest = 0;
    uint64_t next_write = 0;
    uint64_t end = 0;
    uint64_t wanted = 0; // the thread writes the frames before it, if no other thread does
    uint64_t in_flight = 0;
    uint64_t position;          // where the newest sealed frame ends
    uint64_t released_position; // L1: nothing after it is overwritten
    uint64_t released_lsn = 0;  // a durable snapshot holds all records up to it
    uint64_t generation;        // of the frame before `position`
    bool generation_pending;    // the next frame starts one, with durable_lsn
    bool wrap_pending = false;  // the next frame starts one, at the ring's front
    uint64_t durable_lsn;
    repeated_records repeated;
    uint64_t counted; // the LSN by the generation's count: repeated records count again
    size_t reserved;  // between log_append_begin and log_append_end: bytes left for the length and the step
    bool was_durable; // also between them: whether all records were durable
    log_metrics metrics;
    uint32_t returning = 0; // committers of frames that became durable since a write began, and have not returned since
    bool stopping = false;
    bool thread_asleep = false; // until it is woken; else it checks again by itself
    bool draining = false;      // log_continue waits until nothing is in flight
    os::idle_poller_trial idle_poller_trial;

    std::atomic<uint32_t> drained_word{0};
    std::atomic<uint32_t> thread_word{0};
    std::atomic<uint64_t> last; // the highest LSN appended
    // All records of this ring up to it are durable. The only ring of a log: the LSN of the last durable record. One of
    // many: if some are not durable, the LSN before the first of them, or a lower one; nothing_pending if all are.
    std::atomic<uint64_t> durable;
    spin_budget waiting;
};

struct log {
    // Constant.
    const ty_log_sink *sink;
    const char *name;
    ty_status (*check)(void *context);
    void *context;
    uint32_t count; // of rings
    log_ring *rings;
    uint64_t recovered;
    bool has_idle_poller;
    os::idle_poller idle_poller; // runs while one thread alone writes a frame and waits for it
    std::atomic<bool> idle_poller_taken{false};

    os::mutex error_lock{os::lock_rank::work_errors};
    ty_error error; // why it is broken; guarded by error_lock
    std::atomic<bool> broken{false};
    std::atomic<uint64_t> durable_seen{0}; // by log_durable(), of several rings
    // log_wait_beyond(): a waiting thread counts itself in `feeds`, then reads durable_changes, then log_durable().
    std::atomic<uint32_t> feeds{0};
    std::atomic<uint32_t> durable_changes{0};
};

inline slot &slot_of(log_ring *r, uint64_t frame) {
    return r->slots[frame % slot_count];
}

inline bool is_broken(const log_ring *r) {
    return r->all->broken.load(std::memory_order_relaxed);
}

// Whether a slot's frame holds anything.
inline bool is_filled(const log_ring *r, const slot &s) {
    return s.payload > (s.generation_start ? 0 : r->geometry.claim_bytes);
}

inline size_t record_max(const log_ring *r) {
    return r->geometry.frame_bytes_max / 2;
}

inline uint64_t ring_end(const log_ring *r) {
    return r->released_position + r->geometry.bytes;
}

// Words that are changed under the lock, and whose sleepers are woken after it: a woken thread needs the lock.
struct wakes {
    wait_word *all[slot_count];
    unsigned all_count = 0;
    wait_word *one = nullptr;
    std::atomic<uint32_t> *thread = nullptr;
    std::atomic<uint32_t> *drained = nullptr;

    void note_all(slot &s) {
        s.changed.change();
        if (s.waited)
            all[all_count++] = &s.changed;
        s.waited = false;
    }
    void note_one(slot &s) {
        s.changed.change();
        one = &s.changed;
    }
    void wake() const {
        if (one)
            one->wake_one();
        for (unsigned i = 0; i < all_count; ++i)
            all[i]->wake_all();
        if (thread)
            os::wake_one(*thread);
        if (drained)
            os::wake_all(*drained);
    }
};

// ---- ring_write.cpp

void note_thread(log_ring *r, wakes &w);
void note_everybody(log_ring *r, wakes &w);
bool can_write(log_ring *r);
ty_status broken_failure(log *l);
void break_log(log *l, ty_status status, uint64_t offset);
void wake_everybody(log *l);
// More is durable, or may be. Without a lock.
void notify_feeds(log *l);
// One of many: derives `durable` from the ring's frames. Under the lock.
void renew_durable(log_ring *r);
// Whether a caller waits for the frame, or the library's thread writes it.
enum class waiting_for_it : bool { nobody, caller };
// Writes the next frame; can_write() holds. Releases the lock.
void write_next(log_ring *r, waiting_for_it who = waiting_for_it::caller);
// Waits until the frame's state changes. Releases the lock.
void wait_for(log_ring *r, uint64_t frame);
// The thread's main function; its argument is the ring.
void *write_after(void *argument);
// The wait of a caller for one ring. own: it has appended there, and will append there again.
ty_status ring_wait(log_ring *r, uint64_t lsn, bool own);
// Has the ring's thread write what is not durable up to the LSN, if no other thread does.
void ring_ask(log_ring *r, uint64_t lsn);

// ---- ring_append.cpp

// How much the frame may hold: at most a buffer, not beyond the ring's end, and (L1) not beyond the ring's free space.
void set_room(log_ring *r, slot &s);
// L3: offsets are assigned in the order in which frames are numbered and written.
void seal(log_ring *r);
void seal_full(log_ring *r); // and has the thread write it
// Starts the generation if necessary, repeats the records that must be, and ensures that the gathering frame has room
// for so many bytes. The lock may be released and taken again. TY_E_SPACE has no detail.
ty_status make_room(log_ring *r, size_t bytes);

// ---- ring.cpp

ty_status ring_set_up(log_ring *r, uint32_t stream, const log_options &options, const log_header &header);
void ring_destroy(log_ring *r);
void ring_rest(log_ring *r);
void ring_resume(log_ring *r);
void drop_repeated(log_ring *r);
stream_position ring_position_now(log_ring *r);
void ring_release(log_ring *r, const stream_position &redo_point, uint64_t lsn);
// Up to the point where waiters may continue.
void ring_continue(log_ring *r, const stream_position &redo_point, uint64_t lsn);
log_metrics ring_metrics(log_ring *r);

} // namespace taiyen
