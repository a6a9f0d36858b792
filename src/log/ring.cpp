// The ring: appends gather in frames in memory; who wants a record stable writes the frame that holds it.
//
//   gathering --(full, wanted, or a mark)--> sealed --begin_write--> writing --end_write--> written --settle--> free
//
// Frames are numbered; frame n lies in slot n % slot_count. [oldest, next_write) are being written, or written while an
// older one is not; [next_write, end) are sealed, the last of them perhaps gathering.
//
// Who waits does so on the word of its frame's slot, which changes when the frame is stable, when somebody who waits
// for it must write, and when the log breaks. A stable record is seen without the lock.
#include "frame.hpp"
#include "wait_word.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

// L6 rests on the first: frames begun and not known to be stable. Only one that can take no more is written beside
// another: the fewer there are, the more each holds (log.md). While so many are in flight, another one can gather, also
// across the ring's end: one that is sealed there, the start of a session, and the one behind it.
constexpr uint64_t writes_in_flight_max = frames_unstable_1;
constexpr unsigned slot_count = frames_unstable_1 + 3;

// What nobody waits for is written when it is so old, or up to twice: so the thread does not write what a committer is
// about to, and what a block is filled up with is a small share of what is written.
constexpr uint64_t linger_ns = 4000000;

enum class room_limit : uint8_t { buffer, ring_end, free_space };
enum class frame_state : uint8_t { gathering, sealed, writing, written };

struct slot {
    uint8_t *memory;
    frame_state state;
    bool session_start;
    bool waited;          // somebody may wait for it
    uint32_t committers;  // who wanted it stable
    uint32_t payload;     // bytes so far
    uint32_t payload_max; // that buffer and ring have room for
    room_limit limit;     // why it is no more
    uint64_t session;
    uint64_t from;
    uint64_t end; // position; once it is sealed
    uint64_t first_sequence;
    uint64_t last_sequence; // of the last record in it; 0: there is none
    wait_word changed;
};

// Those whose commits have just become stable are likely to commit again: who could write a frame lets others run until
// they are back, as long as one comes back within this time, a fraction of a write. A lone committer is back itself.
constexpr uint64_t return_ns_max = 20000;

// What recovery believed and does not know to be durable (L4): records with their lengths, to be appended first.
struct repeated_records {
    uint8_t *bytes = nullptr;
    size_t size = 0;
    size_t room = 0;
    size_t done = 0;
};

} // namespace

struct log {
    // Constant.
    const ty_log_sink *sink;
    const char *name;
    ty_status (*check)(void *context);
    void *context;
    uint64_t identity;
    ring_geometry ring;
    uint8_t *memory;
    bool has_thread;
    os::thread thread;
    bool has_vigil;
    os::vigil vigil; // over who alone writes a frame that is waited for

    os::mutex lock{os::lock_rank::log}; // guards all that follows, but what is atomic
    slot slots[slot_count];
    slot *gathering = nullptr; // the newest one, if it is not sealed
    uint64_t oldest = 0;
    uint64_t next_write = 0;
    uint64_t end = 0;
    uint64_t in_flight = 0;
    uint64_t position;          // where the newest sealed frame ends
    uint64_t released_position; // L1: nothing behind it is written over
    uint64_t session;           // of the frame before `position`
    bool session_pending;       // the next frame starts one, with durable_sequence
    bool turn_pending = false;  // the next frame starts one, at the ring's front
    uint64_t durable_sequence;
    repeated_records repeated;
    uint64_t counted; // the sequence by the session's count: repeated records count again
    size_t reserved;  // between log_append_begin and log_append_end: bytes left for the length
    ty_error error;   // why it is broken
    log_figures figures;
    uint32_t returning = 0; // committers of frames that became stable since a write began, who were not back since
    bool stopping = false;
    bool thread_asleep = false; // until it is woken; else it looks again by itself
    bool draining = false;      // log_continue waits until nothing is in flight
    os::vigil_trial vigil_trial;

    std::atomic<uint32_t> drained_word{0};
    std::atomic<uint32_t> thread_word{0};
    std::atomic<bool> broken{false};
    std::atomic<uint64_t> last;
    std::atomic<uint64_t> stable;
    patience waiting;
};

namespace {

slot &slot_of(log *l, uint64_t frame) {
    return l->slots[frame % slot_count];
}

uint64_t ring_end(const log *l) {
    return l->released_position + l->ring.bytes;
}

// ---- Waking

// Words to be changed under the lock, and their sleepers woken after it: who wakes needs it.
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

void drop_repeated(log *l) {
    free(l->repeated.bytes);
    l->repeated = {};
}

// A durable snapshot holds all up to the sequence.
void forget_repeated(log *l, uint64_t sequence) {
    drop_repeated(l);
    l->durable_sequence = sequence;
}

// ---- Frames

// How much the frame may hold: at most a buffer, not beyond the ring's end, and (L1) not beyond what the ring has free.
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

// L3: positions are given in the order in which frames are numbered and written.
void seal(log *l) {
    slot &s = *l->gathering;
    l->gathering = nullptr;
    uint64_t start = s.session_start && l->turn_pending ? next_front(l->ring, s.from) : s.from;
    s.end = start + frame_bytes(l->ring, s.payload);
    s.state = frame_state::sealed;
    l->position = s.end;
    l->turn_pending = s.end % l->ring.bytes == 0;
}

bool can_write(log *l) {
    if (l->next_write == l->end || l->broken.load(std::memory_order_relaxed))
        return false;
    const slot &s = slot_of(l, l->next_write);
    uint64_t others_max = s.state == frame_state::gathering ? 0 : writes_in_flight_max - 1;
    return s.payload > 0 && l->next_write - l->oldest <= others_max;
}

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

ty_status broken_failure(const log *l) {
    return failure(l->error.status, "write the log")
        .at(l->name, l->error.offset)
        .cause(l->error.system_error)
        .remedy("a snapshot holds what the log could not take: free space or mend the disk, then commit again");
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

enum class waiting_for_it : bool { nobody, caller };

// Writes the next frame; can_write() holds. Gives the lock up.
void write_next(log *l, waiting_for_it who = waiting_for_it::caller) {
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
    if (!status && l->check)
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

// Waits until something becomes of the frame. Gives the lock up.
void wait_for(log *l, uint64_t frame) {
    slot &s = slot_of(l, frame);
    s.waited = true;
    uint32_t seen = s.changed.now();
    l->lock.unlock();
    s.changed.wait(seen, l->waiting);
}

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

// ---- Appending

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

void seal_full(log *l) {
    seal(l);
    wakes w;
    note_thread(l, w);
    w.wake();
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

// Starts the session if need be, repeats what it must, and sees that the gathering frame has room for so many bytes.
// The lock may be given up and taken again. TY_E_SPACE has no detail.
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

uint64_t frame_of(log *l, uint64_t sequence) {
    uint64_t n = l->oldest;
    while (n + 1 < l->end && slot_of(l, n).last_sequence < sequence)
        ++n;
    return n;
}

// ---- The thread

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

// ---- Making and ending

ty_status keep_record(void *context, uint64_t sequence, uint64_t, const uint8_t *bytes, size_t size) {
    log *l = static_cast<log *>(context);
    repeated_records &kept = l->repeated;
    if (sequence <= l->durable_sequence)
        return TY_OK;
    size_t wanted = kept.size + length_bytes_max + size;
    if (wanted > kept.room) {
        void *larger = realloc(kept.bytes, 2 * wanted);
        if (!larger)
            return failure(TY_E_MEMORY, "keep %zu bytes of the log", 2 * wanted).at(l->name);
        kept.bytes = static_cast<uint8_t *>(larger);
        kept.room = 2 * wanted;
    }
    put_length(kept.bytes + kept.size, size);
    kept.size += length_bytes(size);
    memcpy(kept.bytes + kept.size, bytes, size);
    kept.size += size;
    return TY_OK;
}

// L4: what was read and may not be durable is read again, to be appended before anything else.
ty_status read_repeated(log *l, const log_options &options) {
    l->durable_sequence = options.tail.sequence;
    if (options.tail.sequence == options.end.sequence)
        return TY_OK;
    log_contents contents;
    ty_status status =
        log_scan(*l->sink, l->name, options.identity, options.tail, {l, keep_record, &options.end}, &contents);
    if (status || contents.end.sequence == options.end.sequence)
        return status;
    return failure(TY_E_DAMAGED, "read the log a second time: it has changed").at(l->name);
}

ty_status set_up(log *l, const log_options &options) {
    log_header_2 header;
    if (ty_status status = log_check(*options.sink, options.name, &options.identity, &header))
        return status;
    l->sink = options.sink;
    l->check = options.check;
    l->context = options.context;
    l->name = options.name;
    l->identity = options.identity.log;
    l->ring = geometry_of(header);
    l->released_position = options.start.position;
    l->position = options.end.position;
    l->session = options.end.session;
    l->session_pending = true;
    if (ty_status status = read_repeated(l, options))
        return status;
    l->last = options.end.sequence;
    l->stable = l->counted = l->durable_sequence;
    void *memory = nullptr;
    if (ty_status status = os::map_memory(slot_count * size_t{l->ring.frame_bytes_max}, os::memory_hint::none, &memory))
        return status;
    l->memory = static_cast<uint8_t *>(memory);
    for (unsigned i = 0; i < slot_count; ++i)
        l->slots[i].memory = l->memory + i * size_t{l->ring.frame_bytes_max};
    if (options.thread) {
        if (ty_status status = l->thread.start(write_behind, l))
            return status;
        l->has_thread = true;
        if (ty_status status = l->vigil.start())
            return status;
        l->has_vigil = true;
    }
    return TY_OK;
}

} // namespace

ty_status log_start(const log_options &options, log **made) {
    void *place = calloc(1, sizeof(log));
    if (!place)
        return failure(TY_E_MEMORY, "open the log").at(options.name);
    log *l = new (place) log{};
    if (ty_status status = set_up(l, options)) {
        log_stop(l);
        return status;
    }
    *made = l;
    return TY_OK;
}

void log_stop(log *l) {
    if (l->has_thread) {
        l->lock.lock();
        l->stopping = true;
        l->thread_word.fetch_add(1, std::memory_order_relaxed);
        l->lock.unlock();
        os::wake_all(l->thread_word);
        l->thread.join();
    }
    if (l->has_vigil)
        l->vigil.stop();
    if (l->memory)
        os::unmap_memory(l->memory, slot_count * size_t{l->ring.frame_bytes_max});
    free(l->repeated.bytes);
    l->~log();
    free(l);
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

uint64_t log_stable(log *l) {
    return l->stable.load(std::memory_order_acquire);
}

uint64_t log_last(log *l) {
    return l->last.load(std::memory_order_acquire);
}

bool log_broken(log *l) {
    return l->broken.load(std::memory_order_acquire);
}

void log_break(log *l, ty_status status) {
    wakes w;
    l->lock.lock();
    break_log(l, status, UINT64_MAX, w);
    l->lock.unlock();
    w.wake();
}

log_mark log_mark_now(log *l) {
    os::lock_guard guard(l->lock);
    if (l->gathering && l->gathering->payload > 0)
        seal_full(l);
    return {l->position, l->session, l->last.load(std::memory_order_relaxed)};
}

void log_release(log *l, log_mark mark) {
    wakes w;
    l->lock.lock();
    if (mark.position > l->released_position) { // L1
        l->released_position = mark.position;
        if (l->gathering)
            set_room(l, *l->gathering);
    }
    if (l->session_pending && mark.sequence >= l->last.load(std::memory_order_relaxed))
        forget_repeated(l, mark.sequence);
    if (mark.sequence > l->stable.load(std::memory_order_relaxed)) { // L2
        l->stable.store(mark.sequence, std::memory_order_release);
        note_everybody(l, w);
    }
    l->lock.unlock();
    w.wake();
}

void log_continue(log *l, log_mark mark) {
    wakes w;
    l->lock.lock();
    l->draining = true;
    while (l->in_flight > 0) {
        uint32_t seen = l->drained_word.load(std::memory_order_relaxed);
        l->lock.unlock();
        os::wait_on(l->drained_word, seen);
        l->lock.lock();
    }
    l->draining = false;
    l->turn_pending = false;
    l->gathering = nullptr;
    l->oldest = l->next_write = l->end;
    l->position = l->released_position = mark.position;
    forget_repeated(l, mark.sequence); // L5
    l->session_pending = true;
    l->counted = mark.sequence;
    l->last.store(mark.sequence, std::memory_order_release);
    l->stable.store(mark.sequence, std::memory_order_release);
    l->broken.store(false, std::memory_order_release);
    note_everybody(l, w);
    l->lock.unlock();
    w.wake();
}

log_figures log_get_figures(log *l) {
    os::lock_guard guard(l->lock);
    log_figures figures = l->figures;
    figures.ring_bytes = l->ring.bytes;
    figures.used_bytes = l->position - l->released_position;
    if (l->gathering)
        figures.used_bytes += l->gathering->payload;
    return figures;
}

} // namespace taiyen
