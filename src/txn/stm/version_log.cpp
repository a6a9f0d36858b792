// Old values of words, for readers that would otherwise never finish. While there is such a reader, each commit records
// the values that it overwrites. The records of an orec are a list, newest first.
#include "stm.hpp"

namespace taiyen::stm {

// Q5: an old value is recorded before its word is stored to. old_time_ separates the current lists from those of
// earlier readers; it changes while no commit is recording.
ty_status domain::begin_old() {
    os::lock_guard guard(lock_);
    if (old_ == nullptr) {
        void *heads = nullptr, *old = nullptr;
        if (ty_status status = os::map_memory(orecs_bytes(), os::memory_hint::none, &heads))
            return status;
        if (ty_status status = os::map_memory(old_bytes(), os::memory_hint::none, &old)) {
            os::unmap_memory(heads, orecs_bytes());
            return status;
        }
        heads_ = static_cast<std::atomic<uint64_t> *>(heads);
        old_ = static_cast<old_value *>(old);
    }
    if (old_readers_++ == 0) {
        await_commits(false, nullptr); // which may still record a value for a reader that is gone
        old_time_++;
        old_used_.store(0, std::memory_order_relaxed);
        old_full_.store(false, std::memory_order_relaxed);
    }
    ask(ask_old);
    return TY_OK;
}

void domain::end_old() {
    os::lock_guard guard(lock_);
    if (old_readers_ != 0 && --old_readers_ == 0)
        no_longer(ask_old);
}

// Q5: an old value is recorded before its word is stored to. The orecs are locked, so no other thread changes their
// lists.
void domain::note_old(const write_set &writes, uint64_t timestamp) {
    for (const written_word &written : writes) {
        const uint64_t index = old_used_.fetch_add(1, std::memory_order_relaxed);
        if (index >= old_max_) {
            old_full_.store(true, std::memory_order_relaxed); // published by the release of the orec
            return;
        }
        std::atomic<uint64_t> &head = heads_[orec_number(written.word)];
        perturb();
        old_[index] = {written.word, __atomic_load_n(written.word, __ATOMIC_RELAXED), timestamp,
                       head.load(std::memory_order_relaxed)};
        head.store(old_time_ << old_index_bits | (index + 1), std::memory_order_release);
    }
}

// What a word held before the first commit after start. False: no commit after start that recorded old values stored to
// it.
bool domain::find_old(const uint64_t *word, uint64_t start, uint64_t *value) const {
    bool found = false;
    uint64_t at = heads_[orec_number(word)].load(std::memory_order_acquire);
    while (at >> old_index_bits == old_time_) {
        const old_value &old = old_[(at & old_index_mask) - 1];
        if (old.until <= start)
            break;
        if (old.word == word) {
            *value = old.value;
            found = true;
        }
        at = old.next;
    }
    return found;
}

// Q1: one state of memory. Q5: its old values are recorded, or old_full_ says that they are not.
bool transaction::load_old(const uint64_t *word, uint64_t *value) {
    const orec *own = domain_->orec_of(word);
    for (;;) {
        const uint64_t version = load_orec(own);
        if (is_locked(version)) {
            os::give_way(); // its owner waits for no running transaction
            continue;
        }
        if (version > window_.start && domain_->find_old(word, window_.start, value))
            return true;
        perturb();
        *value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        perturb();
        if (__atomic_load_n(own, __ATOMIC_RELAXED) != version)
            continue;
        if (version > window_.start && domain_->old_full_.load(std::memory_order_relaxed) &&
            !fault("stm_new_value_where_the_old_was_lost"))
            return abort(conflict::evicted);
        return true;
    }
}

} // namespace taiyen::stm
