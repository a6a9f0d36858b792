// Writing frames, waiting for them, and waking who waits.
#include "ring_runtime.hpp"

#include <cstring>

namespace taiyen {
namespace {

// What nobody waits for is written when it is so old, or up to twice: so the thread does not write what a committer is
// about to, and what a block is filled up with is a small share of what is written.
constexpr uint64_t linger_ns = 4000000;

// Those whose commits have just become stable are likely to commit again: who could write a frame lets others run until
// they are back, as long as one comes back within this time, a fraction of a write. A lone committer is back itself.
constexpr uint64_t return_ns_max = 20000;

} // namespace

void note_thread(log *l, wakes &w) {
    if (!l->has_thread)
        return;
    l->thread_asleep = false;
    l->thread_word.fetch_add(1, std::memory_order_relaxed);
    w.thread = &l->thread_word;
}

void note_everybody(log *l, wakes &w) {
    for (slot &s : l->slots)
        w.note_all(s);
}

bool can_write(log *l) {
    if (l->next_write == l->end || l->broken.load(std::memory_order_relaxed))
        return false;
    const slot &s = slot_of(l, l->next_write);
    uint64_t others_max = s.state == frame_state::gathering ? 0 : writes_in_flight_max - 1;
    return s.payload > 0 && l->next_write - l->oldest <= others_max;
}

ty_status broken_failure(const log *l) {
    return failure(l->error.status, "write the log")
        .at(l->name, l->error.offset)
        .cause(l->error.system_error)
        .remedy("a snapshot holds what the log could not take: free space or mend the disk, then commit again");
}

namespace {

// L2: stable is what is written, with all before it.
void settle(log *l, wakes &w) {
    while (l->oldest < l->next_write && slot_of(l, l->oldest).state == frame_state::written) {
        slot &s = slot_of(l, l->oldest);
        if (s.last_sequence > l->stable.load(std::memory_order_relaxed))
            l->stable.store(s.last_sequence, std::memory_order_release);
        l->returning += s.committers;
        w.note_all(s);
        ++l->oldest;
    }
}

// If more may be written and somebody waits for it, one of these is to do it; else the thread.
void pass_on(log *l, wakes &w) {
    if (!can_write(l))
        return;
    for (uint64_t n = l->next_write; n < l->end; ++n)
        if (slot &s = slot_of(l, n); s.waited) {
            w.note_one(s);
            return;
        }
    if (slot_of(l, l->next_write).state == frame_state::sealed)
        note_thread(l, w);
}

void break_log(log *l, ty_status status, uint64_t offset, wakes &w) {
    if (l->broken.load(std::memory_order_relaxed))
        return;
    ty_error_detail(&l->error);
    if (l->error.status != status) { // a sink of the user's that says nothing
        l->error = {};
        l->error.status = status;
    }
    l->error.offset = offset;
    l->broken.store(true, std::memory_order_release);
    note_everybody(l, w);
}

void fill_header(const log *l, slot &s, uint32_t unstable) {
    frame_header_1 header{};
    header.shape = s.payload | unstable << 23 | (s.session_start ? frame_session_start_1 : 0);
    memcpy(s.memory, &header, sizeof header);
    uint64_t sum = frame_checksum(l->identity, s.session_start ? 0 : s.session, s.from, s.memory, s.payload);
    header.checksum_low = static_cast<uint32_t>(sum);
    header.checksum_high = static_cast<uint32_t>(sum >> 32);
    memcpy(s.memory, &header, sizeof header);
}

void end_write(log *l, slot &s, uint64_t bytes, ty_status status, wakes &w) {
    if (--l->in_flight == 0 && l->draining) {
        l->drained_word.fetch_add(1, std::memory_order_relaxed);
        w.drained = &l->drained_word;
    }
    if (status && s.end > l->released_position) {
        break_log(l, status, l->ring.offset + (s.end - bytes) % l->ring.bytes, w);
        return;
    }
    s.state = frame_state::written;
    l->figures.frames += 1;
    l->figures.bytes += bytes;
    settle(l, w);
    pass_on(l, w);
}

} // namespace

void write_next(log *l, waiting_for_it who) {
    if (slot_of(l, l->next_write).state == frame_state::gathering)
        seal(l);
    slot &s = slot_of(l, l->next_write);
    uint32_t unstable = 0; // L3; what a durable snapshot holds does not count
    for (uint64_t n = l->oldest; n < l->next_write; ++n)
        unstable += slot_of(l, n).end > l->released_position;
    s.state = frame_state::writing;
    l->returning = 0;
    ++l->next_write;
    ++l->in_flight;
    // Where others wait, too, they keep the processors awake. A vigil is kept over one wait at a time.
    const bool timed = l->has_vigil && who == waiting_for_it::caller && s.committers <= 1 && l->in_flight == 1;
    const bool watched = timed && l->vigil_trial.wants_vigil();
    l->lock.unlock();

    fill_header(l, s, unstable);
    uint64_t bytes = frame_bytes(l->ring, s.payload);
    uint64_t offset = l->ring.offset + (s.end - bytes) % l->ring.bytes;
    uint64_t began_ns = timed ? os::now_ns() : 0;
    bool vigil_kept = watched && l->vigil.begin();
    os::not_cancelable whole; // the sink may be the program's
    ty_status status = l->sink->write(l->sink->context, offset, s.memory, bytes);
    if (!status && l->check) // N3
        status = l->check(l->context);
    if (vigil_kept)
        l->vigil.end();
    uint64_t took_ns = timed ? os::now_ns() - began_ns : 0;

    wakes w;
    l->lock.lock();
    if (timed)
        l->vigil_trial.note(took_ns);
    end_write(l, s, bytes, status, w);
    l->lock.unlock();
    w.wake();
}

void wait_for(log *l, uint64_t frame) {
    slot &s = slot_of(l, frame);
    s.waited = true;
    uint32_t seen = s.changed.now();
    l->lock.unlock();
    s.changed.wait(seen, l->waiting);
}

namespace {

// Somebody wants the frame stable.
void note_committer(log *l, uint64_t frame) {
    ++slot_of(l, frame).committers;
    if (l->returning > 0)
        --l->returning;
}

// Whether to let others run before the frame that could be written now is.
struct gathering {
    uint32_t returning = 0; // when it last looked
    uint64_t since_ns = 0;  // that they are so many
    bool ended = false;

    bool goes_on(log *l) {
        if (ended || l->returning == 0 || slot_of(l, l->next_write).state != frame_state::gathering)
            return false;
        uint64_t now = os::now_ns();
        if (l->returning != returning)
            since_ns = now;
        returning = l->returning;
        return now - since_ns <= return_ns_max;
    }
    void end() { ended = true; }
};

uint64_t frame_of(log *l, uint64_t sequence) {
    uint64_t n = l->oldest;
    while (n + 1 < l->end && slot_of(l, n).last_sequence < sequence)
        ++n;
    return n;
}

} // namespace

void *write_behind(void *argument) {
    log *l = static_cast<log *>(argument);
    uint64_t due = 0; // what had been appended when it last looked
    for (;;) {
        l->lock.lock();
        if (l->stopping)
            break;
        bool more = l->next_write < l->end && slot_of(l, l->next_write).payload > 0;
        if (can_write(l)) {
            slot &s = slot_of(l, l->next_write);
            if (s.state == frame_state::sealed || s.first_sequence <= due) {
                write_next(l, waiting_for_it::nobody);
                continue;
            }
        }
        uint32_t seen = l->thread_word.load(std::memory_order_relaxed);
        uint64_t last = l->last.load(std::memory_order_relaxed);
        l->thread_asleep = l->broken.load(std::memory_order_relaxed) || (!more && last == due);
        uint64_t timeout = l->thread_asleep ? os::wait_for_ever : linger_ns;
        due = last;
        l->lock.unlock();
        os::wait_on(l->thread_word, seen, timeout);
    }
    l->lock.unlock();
    return nullptr;
}

ty_status log_wait(log *l, uint64_t sequence) {
    const uint64_t last = l->last.load(std::memory_order_acquire);
    sequence = sequence < last ? sequence : last;
    gathering gathers;
    bool noted = false;
    while (l->stable.load(std::memory_order_acquire) < sequence) {
        l->lock.lock();
        if (l->stable.load(std::memory_order_relaxed) >= sequence) {
            l->lock.unlock();
            return TY_OK;
        }
        ty_status status = l->broken.load(std::memory_order_relaxed) ? broken_failure(l) : TY_OK;
        if (!status && l->counted < sequence) // it is one to be repeated
            status = make_room(l, 0);
        if (status) {
            l->lock.unlock();
            return status;
        }
        uint64_t frame = frame_of(l, sequence);
        if (!noted)
            note_committer(l, frame);
        noted = true;
        if (frame < l->next_write || !can_write(l)) {
            wait_for(l, frame);
        } else if (gathers.goes_on(l)) {
            l->lock.unlock();
            if (!l->waiting.lets_others_run())
                gathers.end();
        } else {
            write_next(l);
        }
    }
    return TY_OK;
}

void log_break(log *l, ty_status status) {
    wakes w;
    l->lock.lock();
    break_log(l, status, UINT64_MAX, w);
    l->lock.unlock();
    w.wake();
}

} // namespace taiyen
