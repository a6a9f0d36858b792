// Appending: records gather in the newest frame. What is not known to be durable is appended again before anything
// else, and a generation is started where the ring begins anew.
#include "ring_runtime.hpp"

#include <cstring>

namespace taiyen {

// L1: a frame stays within the free space of the ring.
void set_room(log_ring *r, slot &s) {
    uint64_t left = r->geometry.bytes - s.from % r->geometry.bytes;
    uint64_t free = ring_end(r) - s.from + (fault("ring_room_one_block_too_much") ? r->geometry.block_bytes : 0);
    uint64_t bytes = r->geometry.frame_bytes_max;
    s.limit = room_limit::buffer;
    if (left < bytes) {
        bytes = left;
        s.limit = room_limit::ring_end;
    }
    if (free < bytes) {
        bytes = free;
        s.limit = room_limit::free_space;
    }
    s.payload_max = bytes > sizeof(frame_header) ? static_cast<uint32_t>(bytes - sizeof(frame_header)) : 0;
}

// L3: frames are written in order. A pending wrap is recorded in the next generation's start, for readers (L6).
void seal(log_ring *r) {
    slot &s = *r->gathering;
    r->gathering = nullptr;
    uint64_t start = s.generation_start && r->wrap_pending ? next_front(r->geometry, s.from) : s.from;
    s.end = start + frame_bytes(r->geometry, s.payload);
    s.state = frame_state::sealed;
    r->position = s.end;
    r->wrap_pending = s.end % r->geometry.bytes == 0;
}

void seal_full(log_ring *r) {
    seal(r);
    wakes w;
    note_thread(r, w);
    w.wake();
}

namespace {

slot &gather(log_ring *r) {
    slot &s = slot_of(r, r->end++);
    r->gathering = &s;
    s.state = frame_state::gathering;
    s.generation_start = false;
    s.waited = false;
    s.committers = 0;
    s.payload = r->geometry.claim_bytes;
    s.generation = r->generation;
    s.from = r->position;
    s.first_lsn = r->counted + 1;
    s.last_lsn = 0;
    set_room(r, s);
    return s;
}

// ---- Generations

// Whether the ring has room for a generation's start and everything that must be repeated, whatever frames it takes.
bool has_room_for_generation(const log_ring *r) {
    uint64_t free = ring_end(r) - r->position;
    if (!r->repeated.bytes.count())
        return free >= r->geometry.block_bytes;
    uint64_t frames = 4 + r->repeated.bytes.count() / (r->geometry.frame_bytes_max / 2);
    uint64_t skipped = r->geometry.frame_bytes_max / 2 + r->geometry.block_bytes; // before the ring's end
    return r->repeated.bytes.count() +
               frames * (sizeof(frame_header) + r->geometry.claim_bytes + r->geometry.block_bytes) + skipped <=
           free;
}

// The caller made sure that a slot is free.
void begin_generation(log_ring *r, uint64_t lsn) {
    slot &s = gather(r);
    generation_start start{make_generation(r->identity), r->generation, lsn, r->wrap_pending};
    memcpy(s.memory + sizeof(frame_header), &start, sizeof start);
    s.generation_start = true;
    s.payload = sizeof start;
    seal(r);
    r->generation = start.generation;
    r->generation_pending = false;
}

// What does not fit before the ring's end goes to its front, in a generation of its own: so a reader can distinguish
// wraps apart.
bool has_room_for_wrap(const log_ring *r) {
    return next_front(r->geometry, r->position) + r->geometry.block_bytes <= ring_end(r);
}

// ---- Records

bool is_repeating(const log_ring *r) {
    return r->repeated.done < r->repeated.bytes.count();
}

// The length of the next one, and the step to its LSN.
struct repeated_record {
    size_t bytes;
    uint64_t step;
};

repeated_record next_repeated(const log_ring *r) {
    const uint8_t *at = r->repeated.bytes.begin() + r->repeated.done;
    const size_t left = r->repeated.bytes.count() - r->repeated.done;
    size_t length = 0;
    size_t taken = get_length(at, left, &length);
    uint64_t skipped = 0;
    bool independent;
    if (r->one_of_many)
        taken += get_step(at + taken, left - taken, &skipped, &independent);
    return {taken + length, skipped + 1};
}

void note_record(log_ring *r, slot &s, uint64_t lsn) {
    if (r->one_of_many && s.last_lsn == 0)
        s.first_lsn = lsn;
    s.last_lsn = r->counted = lsn;
}

void repeat_record(log_ring *r, slot &s) {
    const repeated_record next = next_repeated(r);
    memcpy(s.memory + sizeof(frame_header) + s.payload, r->repeated.bytes.begin() + r->repeated.done, next.bytes);
    s.payload += static_cast<uint32_t>(next.bytes);
    note_record(r, s, r->counted + next.step);
    r->repeated.done += next.bytes;
    if (!is_repeating(r))
        drop_repeated(r);
}

// The gathering frame is full. False: there is no room until a snapshot frees space.
bool close_full_frame(log_ring *r) {
    slot &s = *r->gathering;
    if (s.limit == room_limit::free_space)
        return false;
    if (is_filled(r, s)) {
        seal_full(r);
    } else {
        r->gathering = nullptr;
        --r->end;
    }
    r->wrap_pending = r->wrap_pending || s.limit == room_limit::ring_end;
    return true;
}

// Starts a generation if necessary. False: there is no room. The caller made sure that a slot is free.
bool start_frames(log_ring *r) {
    if (r->generation_pending) {
        if (!has_room_for_generation(r))
            return false;
        r->counted = r->durable_lsn;
        begin_generation(r, r->durable_lsn);
    } else if (r->wrap_pending) {
        if (!has_room_for_wrap(r))
            return false;
        begin_generation(r, r->counted);
    } else {
        gather(r);
    }
    return true;
}

// What make_room ensures, in the usual case that there is nothing to do.
bool has_room(const log_ring *r, size_t bytes) {
    const slot *s = r->gathering;
    return s && s->payload + bytes <= s->payload_max && !is_repeating(r) && !is_broken(r);
}

} // namespace

ty_status make_room(log_ring *r, size_t bytes) {
    for (;;) {
        if (is_broken(r))
            return broken_failure(r->all);
        size_t wanted = is_repeating(r) ? next_repeated(r).bytes : bytes;
        if (slot *s = r->gathering) {
            if (s->payload + wanted > s->payload_max) {
                if (!close_full_frame(r))
                    return TY_E_SPACE;
            } else if (is_repeating(r)) {
                repeat_record(r, *s);
            } else {
                return TY_OK;
            }
        } else if (r->end - r->oldest < slot_count) {
            if (!start_frames(r))
                return TY_E_SPACE;
        } else {
            can_write(r) ? write_next(r) : wait_for(r, r->oldest);
            r->lock.lock();
        }
    }
}

namespace {

uint8_t *end_of(const slot &s) {
    return s.memory + sizeof(frame_header) + s.payload;
}

// Under the lock, which is released on failure.
inline ty_status begin_append(log_ring *r, size_t bytes, uint8_t **room, bool may_wait) {
    const size_t reserved = length_bytes(bytes) + (r->one_of_many ? step_bytes_max : 0);
    if (!has_room(r, reserved + bytes)) [[unlikely]] {
        ty_status status = TY_E_BUSY;
        if (may_wait || is_broken(r) || r->end - r->oldest < slot_count)
            status = make_room(r, reserved + bytes);
        if (status) {
            r->lock.unlock();
            return status;
        }
    }
    r->reserved = reserved;
    *room = end_of(*r->gathering) + reserved;
    if (r->one_of_many) {
        // L10: its LSN, still to be taken, is above all that are appended by now
        r->was_durable = r->durable.load(std::memory_order_relaxed) == nothing_pending;
        if (r->was_durable && !fault("taken_lsn_does_not_hold_durable_back"))
            r->durable.store(log_last(r->all), std::memory_order_relaxed);
    }
    return TY_OK;
}

// Writes the lengths before a record's bytes, and moves the record up to them: returns how many bytes they took.
size_t put_heads(log_ring *r, slot &s, size_t bytes, uint64_t lsn, bool independent) {
    uint8_t *at = end_of(s), step[step_bytes_max];
    const size_t length = length_bytes(bytes);
    const size_t step_bytes = r->one_of_many ? put_step(step, lsn - r->counted - 1, independent) : 0;
    if (length + step_bytes < r->reserved)
        memmove(at + length + step_bytes, at + r->reserved, bytes);
    put_length(at, bytes);
    if (r->one_of_many)
        memcpy(at + length, step, step_bytes);
    return length + step_bytes;
}

// Writes the record in the reserved room.
inline void put_record(log_ring *r, size_t bytes, uint64_t lsn, bool independent) {
    slot &s = *r->gathering;
    const size_t taken = put_heads(r, s, bytes, lsn, independent);
    s.payload += static_cast<uint32_t>(taken + bytes);
    note_record(r, s, lsn);
    r->last.store(lsn, std::memory_order_release);
}

// Releases the lock. first: the LSN of the first record that was put since begin_append.
inline void end_append(log_ring *r, size_t bytes, uint64_t lsn, bool independent, uint64_t first) {
    wakes w;
    if (bytes) {
        put_record(r, bytes, lsn, independent);
        if (r->thread_asleep)
            note_thread(r, w);
    }
    if (r->one_of_many && r->was_durable)
        r->durable.store(bytes ? first - 1 : nothing_pending, std::memory_order_release);
    r->lock.unlock();
    if (w.thread)
        w.wake();
}

} // namespace

ty_status log_append_begin(log *l, uint32_t stream, size_t bytes, uint8_t **room, log_turn turn) {
    log_ring *r = l->rings + stream;
    if (bytes > record_max(r))
        return TY_E_SPACE;
    if (turn == log_turn::wait)
        r->lock.lock();
    else if (!r->lock.try_lock())
        return TY_E_BUSY;
    return begin_append(r, bytes, room, turn == log_turn::wait);
}

void log_append_end(log *l, uint32_t stream, size_t bytes, uint64_t lsn, bool independent) {
    end_append(l->rings + stream, bytes, lsn, independent, lsn);
}

ty_status log_append_begin(log *l, size_t bytes, uint8_t **room) {
    log_ring *r = l->rings;
    if (bytes > record_max(r))
        return TY_E_SPACE;
    r->lock.lock();
    return begin_append(r, bytes, room, true);
}

namespace {

uint64_t next_lsn(const log_ring *r) {
    return 1 + (r->one_of_many ? log_last(r->all) : r->last.load(std::memory_order_relaxed));
}

} // namespace

uint64_t log_append_end(log *l, size_t bytes) {
    log_ring *r = l->rings;
    const uint64_t lsn = next_lsn(r) - (bytes == 0);
    end_append(r, bytes, lsn, false, lsn);
    return lsn;
}

ty_status log_append_together(log *l, const log_piece *pieces, size_t count) {
    log_ring *r = l->rings;
    const size_t head = length_bytes_max + (r->one_of_many ? step_bytes_max : 0);
    size_t bytes = 0;
    uint8_t *room;
    for (size_t i = 0; i < count; ++i)
        bytes += head + pieces[i].size;
    if (bytes > r->geometry.frame_bytes_max / 4 * 3)
        return TY_E_SPACE;
    r->lock.lock();
    if (ty_status status = begin_append(r, bytes, &room, true))
        return status;
    const uint64_t first = next_lsn(r);
    for (size_t i = 0; i < count; ++i) {
        r->reserved = head;
        memcpy(end_of(*r->gathering) + head, pieces[i].bytes, pieces[i].size);
        if (i + 1 < count)
            put_record(r, pieces[i].size, next_lsn(r), false);
    }
    end_append(r, pieces[count - 1].size, next_lsn(r), false, first);
    return TY_OK;
}

} // namespace taiyen
