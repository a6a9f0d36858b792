// A shared heap as transactions and readers of one process see it.
//
// PR4: a transaction begins on the newest state: all that were committed before it, by any process. So does a read
//      section, unless another thread of the process is in one.
// PR5: nothing is committed that was computed from a memory that may have become a mixture (I27).
#include "sharing.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace taiyen {
namespace {

constexpr uint64_t piece_bytes = 2 * log_buffer_record_max;
constexpr uint64_t patience_ns = 1'000'000'000;
constexpr uint64_t retry_ns = 50'000;

ty_status expired(const sharing &s, const char *call) {
    return failure(TY_E_EXPIRED, "%s: the heap's files were overwritten while this process stood still", call)
        .at(image_path(s.rt.heap))
        .remedy("roll back, and do it again: the next transaction begins on the newest state");
}

bool is_expired(const sharing &s) {
    return !s.writes_log.load(std::memory_order_acquire) && image_follow_is_lost(s.rt.heap) &&
           !fault("expired_process_commits");
}

// The whole records at the front of a piece. *used: their bytes. *lsn: of the last one.
ty_status apply_piece(sharing &s, uint64_t bytes, uint64_t *used, uint64_t *lsn) {
    txn_runtime &rt = s.rt;
    replayer replay(rt, image_path(rt.heap), replayer::use::pause_late);
    step_runner doer{replay};
    step_writer writer{{&doer, step_runner::take}, &s.batches[0]};
    ty_status status = TY_OK;
    uint64_t at = 0;
    replay.begin();
    while (!status && bytes - at >= buffered_head_bytes) {
        buffered_record head;
        memcpy(&head, s.piece + at, sizeof head);
        const uint64_t whole = buffered_bytes(head.bytes);
        if (head.kind == buffered_kind::to_the_front || whole > bytes - at)
            break;
        if (head.lsn > *lsn) {
            record_view view;
            const auto *record = reinterpret_cast<const uint8_t *>(s.piece + at + buffered_head_bytes);
            if (head.kind != buffered_kind::record || head.lsn != *lsn + 1) { // what is before is applied whole
                status = TY_E_EXPIRED;
                break;
            }
            if (!(status = record_inspect(record, head.bytes, &view))) {
                writer.begin_record(head.lsn, UINT64_MAX);
                status = record_decode_in_place(view.parts, view.size, {rt.user_first_word, rt.user_end_word}, writer);
                *lsn = head.lsn;
            }
        }
        at += whole;
    }
    const ty_status done = writer.hand_over(true);
    replay.end();
    *used = at;
    if (doer.status || (done && done != TY_E_BUSY))
        return doer.status ? doer.status : done;
    return status;
}

// With the writer lock held: the buffer stays as it is.
ty_status load(sharing &s) {
    const memory_change change(s);
    uint64_t lsn = 0;
    const uint64_t released = s.buffer.header().released.load(std::memory_order_acquire);
    if (ty_status status = follow_load(s.rt, &lsn))
        return status;
    s.applied.store(lsn, std::memory_order_relaxed);
    s.position.store(released, std::memory_order_relaxed);
    const ty_status status = apply_newer(s);
    return status == TY_E_EXPIRED ? s.buffer.damaged() : status;
}

} // namespace

ty_status apply_newer(sharing &s) {
    const log_buffer_header &h = s.buffer.header();
    if (h.end.load(std::memory_order_acquire) == s.position.load(std::memory_order_relaxed))
        return TY_OK;
    const memory_change change(s);
    if (s.rt.write_faults != nullptr)
        write_faults_destroy(s.rt); // so that the library's stores raise none
    for (;;) {
        const uint64_t at = s.position.load(std::memory_order_relaxed), end = h.end.load(std::memory_order_acquire);
        const uint64_t place = at % log_buffer_bytes;
        uint64_t bytes = end - at, used = 0, lsn = s.applied.load(std::memory_order_relaxed);
        if (bytes == 0)
            return TY_OK;
        if (bytes > log_buffer_bytes)
            return TY_E_EXPIRED;
        bytes = std::min({bytes, log_buffer_bytes - place, piece_bytes});
        memcpy(s.piece, s.buffer.bytes_at(at), bytes);
        if (!s.buffer.still_there(at))
            return TY_E_EXPIRED;
        const ty_status status = apply_piece(s, bytes, &used, &lsn);
        s.applied.store(lsn, std::memory_order_relaxed);
        s.position.store(at + used, std::memory_order_relaxed);
        if (status)
            return status;
        if (used < bytes) { // what follows is at the ring's front
            buffered_record head;
            memcpy(&head, s.piece + used, sizeof head);
            if (head.kind == buffered_kind::to_the_front)
                s.position.store(at - place + log_buffer_bytes, std::memory_order_relaxed);
            else if (used == 0)
                return s.buffer.damaged();
        }
    }
}

void ring(log_buffer_header &header, sleep_depth from) {
    constexpr auto awake = uint32_t(sleep_depth::awake);
    if (header.sleeps.load(std::memory_order_seq_cst) < uint32_t(from) || header.sleeps.exchange(awake) == awake)
        return;
    header.bell.fetch_add(1, std::memory_order_release);
    os::wake_one_shared(header.bell);
}

ty_status sharing_check(const ty_open_options &options) {
    constexpr const char *call = "open a heap with the option shared";
    const char *other = options.concurrent                          ? "concurrent"
                        : options.log_streams > 1                   ? "log_streams"
                        : options.log                               ? "log"
                        : options.check_stores                      ? "check_stores"
                        : options.mark                              ? "mark"
                        : options.background == TY_BACKGROUND_CALLS ? "background = TY_BACKGROUND_CALLS"
                        : options.code == TY_CODE_MAPPED            ? "code = TY_CODE_MAPPED"
                                                                    : nullptr;
    if (options.kind != TY_TRANSACTIONAL || opens_for_reading(options.mode))
        return failure(TY_E_ARGUMENT, "%s, and not as a transactional one for writing", call)
            .remedy("give the option kind TY_TRANSACTIONAL; processes that only read follow it (TY_OPEN_FOLLOW)");
    if (other == nullptr)
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "%s and %s", call, other).remedy("leave one of them out");
}

ty_status refuse_shared(const txn_runtime &rt, const char *call) {
    if (rt.sharing == nullptr)
        return TY_OK;
    return failure(TY_E_UNSUPPORTED, "%s: several processes may share the heap", call)
        .at(image_path(rt.heap))
        .remedy("open it without the option shared for that");
}

ty_status sharing_create(const heap_opening &state, txn_runtime &rt, const storage_file *create_like) {
    void *memory = nullptr;
    if (ty_status status = os::map_memory(sizeof(sharing), os::memory_hint::none, &memory))
        return status;
    sharing &s = *(rt.sharing = ::new (memory) sharing(rt));
    s.options = state.options;
    s.options.mode = TY_OPEN_EXISTING;
    s.options.reader_lock = nullptr;
    if (state.options.reader_lock != nullptr)
        s.reader_lock = *state.options.reader_lock;
    const char *given[] = {state.heap_path, state.options.journal_path, state.options.log_path};
    for (size_t n = 0; n < std::size(given); ++n)
        if (given[n] != nullptr && (s.texts[n] = path_with(given[n], "")) == nullptr)
            return TY_E_MEMORY;
    s.options.journal_path = s.texts[1];
    s.options.log_path = s.texts[2];
    if (ty_status status = os::map_memory(piece_bytes, os::memory_hint::none, &memory))
        return status;
    s.piece = static_cast<char *>(memory);
    if (ty_status status = s.batches.create(1))
        return status;
    return s.buffer.open(*s.options.storage, s.texts[0], create_like);
}

ty_status sharing_join(const heap_opening &state, txn_runtime &rt) {
    ty_status status = sharing_create(state, rt, nullptr);
    if (status == TY_E_NOT_FOUND)
        return failure(TY_E_BUSY, "share a heap that another process has open for itself alone")
            .at(state.heap_path)
            .remedy("open it there with the option shared, too, or follow it (TY_OPEN_FOLLOW)");
    if (status)
        return status;
    sharing &s = *rt.sharing;
    if ((status = s.buffer.check(image_identity(rt.heap))))
        return status;
    if (s.options.limit_bytes > heap_limit(rt.heap)) // others have it mapped, and this process could not write the log
        return others_share(TY_E_UNSUPPORTED, "raise a heap's limit", state.heap_path);
    s.queue.lock();
    s.lock.release_unwanted();
    s.lock.lock();
    rt.rwlock.lock();
    status = load(s);
    sharing_unlock(rt);
    rt.rwlock.unlock();
    return status ? status : sharing_start_thread(s);
}

void sharing_end(txn_runtime &rt) {
    sharing *s = rt.sharing;
    if (s == nullptr)
        return;
    if (!rt.txn_forked() && s->buffer.is_open()) { // a transaction that is under way is lost with the heap
        s->lock.release_unwanted();
        if (s->writes_log.load(std::memory_order_relaxed))
            s->buffer.resign();
    }
    s->buffer.close();
    if (s->piece != nullptr)
        os::unmap_memory(s->piece, piece_bytes);
    for (char *text : s->texts)
        free(text);
    rt.sharing = nullptr;
    s->~sharing();
    os::unmap_memory(s, sizeof *s);
}

// ---- Transactions

namespace {

// So that a commit always finds room.
bool has_room(const sharing &s) {
    return s.buffer.free_bytes() >= log_buffer_bytes / 2;
}

// Without the lock, which a process that closes needs.
void wait_for_room(sharing &s) {
    log_buffer_header &h = s.buffer.header();
    const uint32_t seen = h.durable_changes.load(std::memory_order_acquire);
    h.wanted.store(UINT64_MAX, std::memory_order_seq_cst);
    h.durable_waiters.fetch_add(1, std::memory_order_seq_cst);
    ring(h, sleep_depth::gathers);
    if (!has_room(s))
        os::wait_on_shared(h.durable_changes, seen, poll_others_ns);
    h.durable_waiters.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace

ty_status sharing_lock(txn_runtime &rt, bool no_wait, uint64_t lock_timeout_ns) {
    sharing &s = *rt.sharing;
    for (;;) {
        if (!no_wait)
            s.queue.lock();
        else if (!s.queue.try_lock())
            return failure(TY_E_BUSY, "begin a transaction: another one is under way");
        if (!no_wait) {
            s.lock.lock();
        } else if (!s.lock.try_lock_for(lock_timeout_ns)) {
            s.queue.unlock();
            return failure(TY_E_BUSY, "begin a transaction: one of another process is under way");
        }
        if (has_room(s))
            return TY_OK;
        sharing_unlock(rt);
        if (no_wait)
            return failure(TY_E_BUSY, "begin a transaction: the log's writer is behind");
        wait_for_room(s);
    }
}

void sharing_unlock(txn_runtime &rt) {
    rt.sharing->lock.unlock();
    rt.sharing->queue.unlock();
}

ty_status sharing_enter(txn_runtime &rt) {
    sharing &s = *rt.sharing;
    ty_status status = is_expired(s) ? TY_E_EXPIRED : apply_newer(s);
    if (status == TY_OK)
        return TY_OK;
    if (is_expired(s))
        s.reads_lost.store(s.reader_lock.lock != nullptr, std::memory_order_relaxed);
    if (s.writes_log.load(std::memory_order_relaxed)) { // its memory has what the log has, or nothing is right
        const ty_error why = keep_error();
        rt.poisoned.store(true, std::memory_order_release);
        return status == TY_E_EXPIRED ? s.buffer.damaged() : report_again(why, status);
    }
    image_follow_lose(rt.heap);
    return load(s);
}

ty_status sharing_check_commit(const txn_runtime &rt) {
    return is_expired(*rt.sharing) ? expired(*rt.sharing, "commit") : TY_OK;
}

ty_status sharing_check_read(const txn_runtime &rt) {
    return is_expired(*rt.sharing) ? expired(*rt.sharing, "go on reading a heap") : TY_OK;
}

ty_status sharing_check_reads_before(txn_runtime &rt, const char *call) {
    const bool lost = rt.sharing->reads_lost.load(std::memory_order_relaxed) &&
                      rt.sharing->reads_lost.exchange(false, std::memory_order_relaxed);
    return lost && !fault("reads_of_a_mixture_count") ? expired(*rt.sharing, call) : TY_OK;
}

uint8_t *sharing_append_begin(txn_runtime &rt, size_t bytes) {
    return rt.sharing->buffer.append_begin(bytes);
}

uint64_t sharing_append_end(txn_runtime &rt, size_t bytes) {
    sharing &s = *rt.sharing;
    if (bytes == 0)
        return 0;
    const uint64_t lsn = s.applied.load(std::memory_order_relaxed) + 1;
    s.buffer.append_end(bytes, lsn);
    s.applied.store(lsn, std::memory_order_relaxed);
    s.position.store(s.buffer.header().end.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ring(s.buffer.header(), sleep_depth::rests);
    return lsn;
}

size_t sharing_record_max(const txn_runtime &rt) {
    return std::min<uint64_t>(rt.sharing->buffer.header().record_max.load(std::memory_order_relaxed),
                              log_buffer_record_max);
}

bool sharing_shows_newest(const txn_runtime &rt) {
    const sharing &s = *rt.sharing;
    return s.position.load(std::memory_order_acquire) == s.buffer.header().end.load(std::memory_order_acquire) &&
           !is_expired(s) && !s.reads_lost.load(std::memory_order_relaxed);
}

uint32_t sharing_number(const txn_runtime &rt) {
    return rt.sharing->buffer.number();
}

uint64_t sharing_last(const txn_runtime &rt) {
    return rt.sharing->applied.load(std::memory_order_relaxed);
}

// ---- Readers

namespace {

// Whoever has the lock exclusively, be it a thread of the library, is waited for; readers are not. With a lock of the
// program's, a transaction is not either, as its thread may wait for this one: it shows the newest state.
void wait_for_writer(sharing &s) {
    const std::atomic<uint32_t> nobody_wakes{0};
    if (s.reader_lock.lock != nullptr) {
        os::wait_on(nobody_wakes, 0, retry_ns);
        return;
    }
    s.rt.rwlock.lock_shared();
    s.rt.rwlock.unlock_shared();
}

bool lock_for_reader(sharing &s) {
    if (s.reader_lock.lock == nullptr)
        s.queue.lock();
    else if (!s.queue.try_lock())
        return false;
    s.lock.lock();
    return true;
}

} // namespace

// What the buffer may lose meanwhile is read with the writer lock held.
ty_status sharing_see_newest(txn_runtime &rt) {
    constexpr int tries_max = 4;
    sharing &s = *rt.sharing;
    const log_buffer_header &h = s.buffer.header();
    for (int tries = 0; tries < tries_max;) {
        const uint64_t behind = h.end.load(std::memory_order_acquire) - s.position.load(std::memory_order_acquire);
        const bool expired = is_expired(s);
        if (behind == 0 && !expired)
            return TY_OK;
        const bool with_lock = expired || behind > log_buffer_bytes / 2 || tries > 1;
        const bool may_load = with_lock || s.writes_log.load(std::memory_order_acquire);
        if (with_lock && !lock_for_reader(s)) {
            wait_for_writer(s);
            continue;
        }
        const bool alone = rt.rwlock.try_lock();
        const ty_status status = !alone ? TY_OK : may_load ? sharing_enter(rt) : apply_newer(s);
        if (status && status != TY_E_EXPIRED && !may_load) // a part of a record may be in memory
            image_follow_lose(rt.heap);
        if (alone)
            rt.rwlock.unlock();
        if (with_lock)
            sharing_unlock(rt);
        if (alone && (status == TY_OK || may_load))
            return status;
        if (!alone)
            wait_for_writer(s);
        tries += alone || s.reader_lock.lock == nullptr;
    }
    return TY_OK;
}

// ---- Durability

uint64_t sharing_durable(const txn_runtime &rt) {
    return rt.sharing->buffer.header().durable.load(std::memory_order_acquire);
}

bool sharing_is_durable(const txn_runtime &rt, uint64_t lsn) {
    return sharing_durable(rt) >= lsn;
}

// Asks the log's writer, whoever that is, and waits for it. One write may serve many.
ty_status sharing_make_durable(txn_runtime &rt, uint64_t lsn) {
    sharing &s = *rt.sharing;
    log_buffer_header &h = s.buffer.header();
    const uint32_t failures = h.failures.load(std::memory_order_acquire);
    const uint64_t begun = os::now_ns();
    for (;;) {
        const uint32_t seen = h.durable_changes.load(std::memory_order_acquire);
        if (sharing_is_durable(rt, lsn))
            return TY_OK;
        if (s.writes_log.load(std::memory_order_acquire)) {
            if (ty_status status = write_until_durable(s, lsn))
                return status;
            continue;
        }
        // If only this process is left, its thread waits for the caller.
        if (os::now_ns() - begun > patience_ns && (txn_current(rt.heap) != nullptr || in_section(rt)))
            return failure(TY_E_BUSY, "make a transaction durable: nobody writes the heap's log")
                .at(image_path(rt.heap))
                .remedy("end the transaction or read section under way first");
        if (h.failures.load(std::memory_order_acquire) != failures)
            return failure(ty_status(h.failure.load(std::memory_order_relaxed)),
                           "make a transaction durable: the process that writes the heap's log cannot write it")
                .at(image_path(rt.heap))
                .remedy("free space on its disk, or look there (ty_background_work_status); then try again");
        uint64_t wanted = h.wanted.load(std::memory_order_relaxed);
        while (wanted < lsn && !h.wanted.compare_exchange_weak(wanted, lsn, std::memory_order_seq_cst)) {
        }
        h.durable_waiters.fetch_add(1, std::memory_order_seq_cst);
        ring(h, sleep_depth::gathers);
        if (!sharing_is_durable(rt, lsn))
            os::wait_on_shared(h.durable_changes, seen, poll_others_ns);
        h.durable_waiters.fetch_sub(1, std::memory_order_relaxed);
    }
}

} // namespace taiyen
