// Blocks whose free is deferred: from the preparation of the commit that frees them until no transaction can read them
// any more (X22).
#pragma once

#include "../changes/changes.hpp"

namespace taiyen {

struct block_note {
    uint64_t word;
    uint64_t words;
};

// Thread-safe, but for what needs the lock.
class deferred_frees {
public:
    ty_status create() { return words_.create(most); }
    void destroy() { words_.destroy(); }

    // False: the caller has seen no commit that freed the block, or it is given back. Without the lock, as a commit
    // that another thread has seen entered its blocks before it released their orecs.
    bool may_hold(uint64_t word) const { return places_[place_of(word)].load(std::memory_order_relaxed) != 0; }
    // Expected: TY_E_BUSY, with nothing entered: another thread has freed one of them; TY_E_MEMORY likewise.
    ty_status enter(const os::array<block_note> &freed);
    void leave(const block_note *freed, size_t count);
    bool any();

    // With the lock held:
    os::mutex lock{os::lock_rank::deferred_frees};
    bool holds(uint64_t word) const { return words_.find(word) != word_table::none; }
    template <class Callback>
    ty_status each_word(Callback callback) const {
        return words_.each_word(callback);
    }

private:
    static constexpr size_t most = size_t{1} << 28;
    static constexpr unsigned places_bits = 12;

    static size_t place_of(uint64_t word) { return word * 0x9e3779b97f4a7c15 >> (64 - places_bits); }
    void count(uint64_t word, int by);
    void leave_one(uint64_t word);

    word_table words_;
    std::atomic<uint32_t> places_[size_t{1} << places_bits]{}; // by a hash: how many of them. Written under the lock
};

} // namespace taiyen
