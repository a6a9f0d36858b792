// Appending: records gather in the newest frame. What is not known to be durable is appended again before anything
// else, and a session is started where the ring begins anew.
#include "ring_runtime.hpp"

#include <cstring>

namespace taiyen {

// L1.
void set_room(log *l, slot &s) {
    uint64_t left = l->ring.bytes - s.from % l->ring.bytes;
    uint64_t free = ring_end(l) - s.from;
    uint64_t bytes = l->ring.frame_bytes_max;
    s.limit = room_limit::buffer;
    if (left < bytes) {
        bytes = left;
        s.limit = room_limit::ring_end;
    }
    if (free < bytes) {
        bytes = free;
        s.limit = room_limit::free_space;
    }
    s.payload_max = bytes > sizeof(frame_header_1) ? static_cast<uint32_t>(bytes - sizeof(frame_header_1)) : 0;
}

// L3. That a turn is pending goes into the next session's start, for readers (L6).
void seal(log *l) {
    slot &s = *l->gathering;
    l->gathering = nullptr;
    uint64_t start = s.session_start && l->turn_pending ? next_front(l->ring, s.from) : s.from;
    s.end = start + frame_bytes(l->ring, s.payload);
    s.state = frame_state::sealed;
    l->position = s.end;
    l->turn_pending = s.end % l->ring.bytes == 0;
}

void seal_full(log *l) {
    seal(l);
    wakes w;
    note_thread(l, w);
    w.wake();
}

namespace {

slot &gather(log *l) {
    slot &s = slot_of(l, l->end++);
    l->gathering = &s;
    s.state = frame_state::gathering;
    s.session_start = false;
    s.waited = false;
    s.committers = 0;
    s.payload = 0;
    s.session = l->session;
    s.from = l->position;
    s.first_sequence = l->counted + 1;
    s.last_sequence = 0;
    set_room(l, s);
    return s;
}

// ---- Sessions

// Whether the ring has room for a session's start and all that is to be repeated, whatever frames it makes.
bool has_room_for_session(const log *l) {
    uint64_t free = ring_end(l) - l->position;
    if (!l->repeated.size)
        return free >= l->ring.block_bytes;
    uint64_t frames = 4 + l->repeated.size / (l->ring.frame_bytes_max / 2);
    uint64_t skipped = l->ring.frame_bytes_max / 2 + l->ring.block_bytes; // before the ring's end
    return l->repeated.size + frames * (sizeof(frame_header_1) + l->ring.block_bytes) + skipped <= free;
}

// A slot is free.
void begin_session(log *l, uint64_t sequence) {
    slot &s = gather(l);
    session_start_1 start{make_session(l->identity), l->session, sequence, l->turn_pending};
    memcpy(s.memory + sizeof(frame_header_1), &start, sizeof start);
    s.session_start = true;
    s.payload = sizeof start;
    seal(l);
    l->session = start.session;
    l->session_pending = false;
}

// What does not fit before the ring's end goes to its front, in a session of its own: thereby a reader can tell what
// was written in which turn.
bool has_room_for_turn(const log *l) {
    return next_front(l->ring, l->position) + l->ring.block_bytes <= ring_end(l);
}

// ---- Records

bool is_repeating(const log *l) {
    return l->repeated.done < l->repeated.size;
}

size_t next_repeated_bytes(const log *l) {
    size_t length = 0;
    size_t taken = get_length(l->repeated.bytes + l->repeated.done, l->repeated.size - l->repeated.done, &length);
    return taken + length;
}

void repeat_record(log *l, slot &s, size_t bytes) {
    memcpy(s.memory + sizeof(frame_header_1) + s.payload, l->repeated.bytes + l->repeated.done, bytes);
    s.payload += static_cast<uint32_t>(bytes);
    s.last_sequence = ++l->counted;
    l->repeated.done += bytes;
    if (!is_repeating(l))
        drop_repeated(l);
}

// The gathering frame cannot take more. False: nothing can until a snapshot frees space.
bool make_way(log *l) {
    slot &s = *l->gathering;
    if (s.limit == room_limit::free_space)
        return false;
    if (s.payload > 0) {
        seal_full(l);
    } else {
        l->gathering = nullptr;
        --l->end;
    }
    l->turn_pending = l->turn_pending || s.limit == room_limit::ring_end;
    return true;
}

// Starts a session if need be. False: there is no room. A slot is free.
bool start_frames(log *l) {
    if (l->session_pending) {
        if (!has_room_for_session(l))
            return false;
        l->counted = l->durable_sequence;
        begin_session(l, l->durable_sequence);
    } else if (l->turn_pending) {
        if (!has_room_for_turn(l))
            return false;
        begin_session(l, l->counted);
    } else {
        gather(l);
    }
    return true;
}

// What make_room sees to, where there is nothing to do, as nearly always.
bool has_room(const log *l, size_t bytes) {
    const slot *s = l->gathering;
    return s && s->payload + bytes <= s->payload_max && !is_repeating(l) && !l->broken.load(std::memory_order_relaxed);
}

} // namespace

ty_status make_room(log *l, size_t bytes) {
    for (;;) {
        if (l->broken.load(std::memory_order_relaxed))
            return broken_failure(l);
        size_t wanted = is_repeating(l) ? next_repeated_bytes(l) : bytes;
        if (slot *s = l->gathering) {
            if (s->payload + wanted > s->payload_max) {
                if (!make_way(l))
                    return TY_E_SPACE;
            } else if (is_repeating(l)) {
                repeat_record(l, *s, wanted);
            } else {
                return TY_OK;
            }
        } else if (l->end - l->oldest < slot_count) {
            if (!start_frames(l))
                return TY_E_SPACE;
        } else {
            can_write(l) ? write_next(l) : wait_for(l, l->oldest);
            l->lock.lock();
        }
    }
}

size_t log_record_max(const log *l) {
    return l->ring.frame_bytes_max / 2;
}

ty_status log_append_begin(log *l, size_t bytes, uint8_t **place) {
    if (bytes > log_record_max(l))
        return TY_E_SPACE;
    size_t reserved = length_bytes(bytes);
    l->lock.lock();
    if (!has_room(l, reserved + bytes)) [[unlikely]] {
        if (ty_status status = make_room(l, reserved + bytes)) {
            l->lock.unlock();
            return status;
        }
    }
    l->reserved = reserved;
    *place = l->gathering->memory + sizeof(frame_header_1) + l->gathering->payload + reserved;
    return TY_OK;
}

uint64_t log_append_end(log *l, size_t bytes) {
    uint64_t sequence = l->last.load(std::memory_order_relaxed);
    wakes w;
    if (bytes) {
        slot &s = *l->gathering;
        uint8_t *at = s.memory + sizeof(frame_header_1) + s.payload;
        size_t taken = length_bytes(bytes);
        if (taken < l->reserved)
            memmove(at + taken, at + l->reserved, bytes);
        put_length(at, bytes);
        s.payload += static_cast<uint32_t>(taken + bytes);
        s.last_sequence = l->counted = ++sequence;
        l->last.store(sequence, std::memory_order_release);
        if (l->thread_asleep)
            note_thread(l, w);
    }
    l->lock.unlock();
    if (w.thread)
        w.wake();
    return sequence;
}

} // namespace taiyen
