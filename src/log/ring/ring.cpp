// Making a log, ending it, and freeing its space. ring_runtime.hpp tells how the ring works.
#include "ring_runtime.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {

void drop_repeated(log *l) {
    free(l->repeated.bytes);
    l->repeated = {};
}

namespace {

// A durable snapshot holds all up to the sequence.
void forget_repeated(log *l, uint64_t sequence) {
    drop_repeated(l);
    l->durable_sequence = sequence;
}

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

// X11: the thread asks for no file any more when this returns.
void log_rest(log *l) {
    if (!l->has_thread)
        return;
    l->lock.lock();
    l->stopping = true;
    l->thread_word.fetch_add(1, std::memory_order_relaxed);
    l->lock.unlock();
    os::wake_all(l->thread_word);
    l->thread.join();
    l->has_thread = l->stopping = false;
}

void log_resume(log *l) {
    if (!l->has_thread)
        l->has_thread = l->thread.start(write_behind, l) == TY_OK;
}

void log_stop(log *l) {
    log_rest(l);
    if (l->has_vigil)
        l->vigil.stop();
    if (l->memory)
        os::unmap_memory(l->memory, slot_count * size_t{l->ring.frame_bytes_max});
    free(l->repeated.bytes);
    l->~log();
    free(l);
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
