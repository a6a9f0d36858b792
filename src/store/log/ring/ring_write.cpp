// Writing frames, waiting for them, and waking threads that wait.
#include "ring_runtime.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

// A frame that no thread waits for is written when it is this old, or up to twice that: so the thread does not write
// what a committer is about to, and the padding of blocks is a small share of what is written.
constexpr uint64_t linger_ns = 4000000;

// Threads whose commits have just become durable are likely to commit again: a thread that could write a frame lets
// others run until they return, as long as one returns within this time, a fraction of a write. A lone committer has
// itself returned.
constexpr uint64_t return_ns_max = 20000;

} // namespace

void note_thread(log_ring *r, wakes &w) {
    if (!r->has_thread)
        return;
    r->thread_asleep = false;
    r->thread_word.fetch_add(1, std::memory_order_relaxed);
    w.thread = &r->thread_word;
}

void note_everybody(log_ring *r, wakes &w) {
    for (slot &s : r->slots)
        w.note_all(s);
}

bool can_write(log_ring *r) {
    if (r->next_write == r->end || is_broken(r))
        return false;
    const slot &s = slot_of(r, r->next_write);
    uint64_t others_max =
        s.state == frame_state::gathering ? 0 : writes_in_flight_max - !fault("one_frame_too_many_in_flight");
    return is_filled(r, s) && r->next_write - r->oldest <= others_max;
}

// L10: a commit waits for all records up to its own. Records to be repeated that are not in frames yet are not durable
//      either.
void renew_durable(log_ring *r) {
    uint64_t durable = r->repeated.bytes.count() ? r->durable_lsn : nothing_pending;
    for (uint64_t n = r->oldest; n < r->end; ++n)
        if (const slot &s = slot_of(r, n); s.last_lsn > r->released_lsn) {
            durable = std::min(durable, std::max(s.first_lsn - 1, r->released_lsn));
            break;
        }
    r->durable.store(durable, std::memory_order_release);
}

namespace {

// L2: durable is what is written, with all before it.
void advance_durable(log_ring *r, wakes &w) {
    while (r->oldest < r->next_write &&
           (slot_of(r, r->oldest).state == frame_state::written || fault("durable_before_the_write_returned"))) {
        slot &s = slot_of(r, r->oldest);
        if (!r->one_of_many && s.last_lsn > r->durable.load(std::memory_order_relaxed))
            r->durable.store(s.last_lsn, std::memory_order_release);
        r->returning += s.committers;
        w.note_all(s);
        ++r->oldest;
    }
    if (r->one_of_many)
        renew_durable(r);
}

// If more may be written and threads wait for it, one of them must write it; else the library's thread.
void pass_on(log_ring *r, wakes &w) {
    if (!can_write(r))
        return;
    for (uint64_t n = r->next_write; n < r->end; ++n)
        if (slot &s = slot_of(r, n); s.waited) {
            w.note_one(s);
            return;
        }
    if (slot_of(r, r->next_write).state == frame_state::sealed || r->next_write < r->wanted)
        note_thread(r, w);
}

void fill_header(const log_ring *r, slot &s, uint32_t unstable) {
    if (r->one_of_many && !s.generation_start) {
        const frame_claim claim{log_durable(r->all)}; // L9: claims what is durable in all log streams
        memcpy(s.memory + sizeof(frame_header), &claim, sizeof claim);
    }
    frame_header header{};
    header.shape = s.payload | unstable << 23 | (s.generation_start ? frame_generation_start : 0);
    memcpy(s.memory, &header, sizeof header);
    uint64_t sum = frame_checksum(r->identity, s.generation_start ? 0 : s.generation, s.from, s.memory, s.payload);
    header.checksum_low = static_cast<uint32_t>(sum);
    header.checksum_high = static_cast<uint32_t>(sum >> 32);
    memcpy(s.memory, &header, sizeof header);
}

// Whether the log is still usable.
bool end_write(log_ring *r, slot &s, uint64_t bytes, ty_status status, wakes &w) {
    if (--r->in_flight == 0 && r->draining) {
        r->drained_word.fetch_add(1, std::memory_order_relaxed);
        w.drained = &r->drained_word;
    }
    if (status && s.end > r->released_position && !fault("failed_log_write_counts")) {
        break_log(r->all, status, r->geometry.offset + (s.end - bytes) % r->geometry.bytes);
        return false;
    }
    s.state = frame_state::written;
    r->metrics.frames += 1;
    r->metrics.bytes += bytes;
    advance_durable(r, w);
    pass_on(r, w);
    return true;
}

// If others wait, too, they keep the processors awake. The idle poller runs for one wait at a time.
class idle_poll_scope {
public:
    idle_poll_scope(log_ring *r, const slot &s, waiting_for_it who)
        : ring_(r),
          timed_(r->all->has_idle_poller && who == waiting_for_it::caller && s.committers <= 1 && r->in_flight == 1),
          watched_(timed_ && r->idle_poller_trial.wants_poller()) {}
    void begin() {
        log &l = *ring_->all;
        began_ns_ = timed_ ? os::now_ns() : 0;
        if (!watched_ || l.idle_poller_taken.exchange(true, std::memory_order_acquire))
            return;
        kept_ = l.idle_poller.begin();
        if (!kept_)
            l.idle_poller_taken.store(false, std::memory_order_release);
    }
    void end() {
        log &l = *ring_->all;
        if (kept_) {
            l.idle_poller.end();
            l.idle_poller_taken.store(false, std::memory_order_release);
        }
        took_ns_ = timed_ ? os::now_ns() - began_ns_ : 0;
    }
    void note() { // under the lock
        if (timed_)
            ring_->idle_poller_trial.note(took_ns_);
    }

private:
    log_ring *ring_;
    const bool timed_, watched_;
    bool kept_ = false;
    uint64_t began_ns_ = 0, took_ns_ = 0;
};

} // namespace

void write_next(log_ring *r, waiting_for_it who) {
    if (slot_of(r, r->next_write).state == frame_state::gathering)
        seal(r);
    slot &s = slot_of(r, r->next_write);
    uint32_t unstable = 0; // L3; what a durable snapshot holds does not count
    for (uint64_t n = r->oldest + fault("unstable_frames_counted_short"); n < r->next_write; ++n)
        unstable += slot_of(r, n).end > r->released_position;
    s.state = frame_state::writing;
    r->returning = 0;
    ++r->next_write;
    ++r->in_flight;
    idle_poll_scope watch(r, s, who);
    r->lock.unlock();

    fill_header(r, s, unstable);
    log &l = *r->all;
    uint64_t bytes = frame_bytes(r->geometry, s.payload);
    uint64_t offset = r->geometry.offset + (s.end - bytes) % r->geometry.bytes;
    watch.begin();
    os::not_cancelable whole; // the sink may be the program's
    ty_status status = l.sink->write(l.sink->context, offset, s.memory, bytes);
    if (!status && l.check && !fault("commit_to_a_removed_image_counts")) // N3: the files are still there
        status = l.check(l.context);
    watch.end();

    wakes w;
    r->lock.lock();
    watch.note();
    const bool good = end_write(r, s, bytes, status, w);
    r->lock.unlock();
    w.wake();
    if (good)
        notify_feeds(&l);
    else
        wake_everybody(&l);
}

void wait_for(log_ring *r, uint64_t frame) {
    slot &s = slot_of(r, frame);
    s.waited = true;
    uint32_t seen = s.changed.now();
    r->lock.unlock();
    s.changed.wait(seen, r->waiting);
}

namespace {

// A thread wants the frame durable.
void note_committer(log_ring *r, uint64_t frame) {
    ++slot_of(r, frame).committers;
    if (r->returning > 0)
        --r->returning;
}

// Whether to let others run before the next frame is written.
struct gathering {
    uint32_t returning = 0; // at the last check
    uint64_t since_ns = 0;  // since this number is unchanged
    bool ended = false;

    bool goes_on(log_ring *r) {
        if (ended || r->returning == 0 || slot_of(r, r->next_write).state != frame_state::gathering)
            return false;
        uint64_t now = os::now_ns();
        if (r->returning != returning)
            since_ns = now;
        returning = r->returning;
        return now - since_ns <= return_ns_max;
    }
    void end() { ended = true; }
};

// The last frame that has records up to the LSN. A frame without records may never get any, and then no thread writes
// it.
uint64_t frame_of(log_ring *r, uint64_t lsn) {
    uint64_t found = r->oldest;
    for (uint64_t n = r->oldest; n < r->end; ++n) {
        const slot &s = slot_of(r, n);
        if ((s.last_lsn == 0 && !fault("frame_without_records_waited_for")) || s.first_lsn > lsn)
            continue;
        found = n;
        if (s.last_lsn >= lsn)
            break;
    }
    return found;
}

} // namespace

void *write_after(void *argument) {
    log_ring *r = static_cast<log_ring *>(argument);
    uint64_t due = 0; // what had been appended at the last check
    for (;;) {
        r->lock.lock();
        if (r->stopping)
            break;
        bool more = r->next_write < r->end && is_filled(r, slot_of(r, r->next_write));
        if (can_write(r)) {
            slot &s = slot_of(r, r->next_write);
            if (s.state == frame_state::sealed || s.first_lsn <= due || r->next_write < r->wanted) {
                write_next(r, waiting_for_it::nobody);
                continue;
            }
        }
        uint32_t seen = r->thread_word.load(std::memory_order_relaxed);
        uint64_t last = r->last.load(std::memory_order_relaxed);
        r->thread_asleep = is_broken(r) || (!more && last == due);
        uint64_t timeout = r->thread_asleep ? os::wait_for_ever : linger_ns;
        due = last;
        r->lock.unlock();
        os::wait_on(r->thread_word, seen, timeout);
    }
    r->lock.unlock();
    return nullptr;
}

ty_status ring_wait(log_ring *r, uint64_t lsn, bool own) {
    const uint64_t last = r->last.load(std::memory_order_acquire);
    if (!r->one_of_many && lsn > last)
        lsn = last;
    gathering gathers;
    bool noted = !own;
    while (r->durable.load(std::memory_order_acquire) < lsn) {
        r->lock.lock();
        if (r->durable.load(std::memory_order_relaxed) >= lsn) {
            r->lock.unlock();
            return TY_OK;
        }
        ty_status status = is_broken(r) ? broken_failure(r->all) : TY_OK;
        if (!status && r->repeated.bytes.count()) // the record may be one of these
            status = make_room(r, 0);
        if (status) {
            r->lock.unlock();
            return status;
        }
        uint64_t frame = frame_of(r, lsn);
        if (!noted)
            note_committer(r, frame);
        noted = true;
        if (frame < r->next_write || !can_write(r)) {
            wait_for(r, frame);
        } else if (gathers.goes_on(r)) {
            r->lock.unlock();
            if (!r->waiting.lets_others_run())
                gathers.end();
        } else {
            write_next(r);
        }
    }
    return TY_OK;
}

void ring_ask(log_ring *r, uint64_t lsn) {
    if (r->durable.load(std::memory_order_acquire) >= lsn)
        return;
    wakes w;
    r->lock.lock();
    if (r->durable.load(std::memory_order_relaxed) < lsn && !r->repeated.bytes.count()) {
        r->wanted = std::max(r->wanted, frame_of(r, lsn) + 1);
        if (r->next_write < r->wanted && can_write(r))
            note_thread(r, w);
    }
    r->lock.unlock();
    w.wake();
}

} // namespace taiyen
