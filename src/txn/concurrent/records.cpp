// How a concurrent heap logs a commit: its record is encoded while the orecs of its words are locked, and appended
// with its timestamp before anything is stored.
#include "members.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t record_words_worth_making = uint64_t{8} << 20; // with more it is not tried whether they fit a record
constexpr uint8_t void_record = 0xf0; // "a part starts", with nothing after it: a timestamp without changes (X23)

ty_atomic_txn &txn_of(stm::transaction &own) {
    return static_cast<ty_atomic_txn &>(own);
}

uint64_t load_word(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

// The word's new value.
uint64_t value_of(const stm::written_word &written, uint64_t before) {
    return (before & ~written.mask) | written.value;
}

bool is_in_blocks(const concurrent_heap &all, const uint64_t *word) {
    const uint64_t offset = reinterpret_cast<uintptr_t>(word) - reinterpret_cast<uintptr_t>(all.base);
    return offset >= all.first_byte && offset < all.end_byte;
}

// ---- Transactions that stored a few words, and did nothing else

void sort_words(record_words &words) {
    for (size_t i = 1; i < words.count; i++) {
        const uint64_t number = words.number[i], value = words.value[i], difference = words.difference[i];
        size_t at = i;
        for (; at > 0 && words.number[at - 1] > number; at--) {
            words.number[at] = words.number[at - 1];
            words.value[at] = words.value[at - 1];
            words.difference[at] = words.difference[at - 1];
        }
        words.number[at] = number;
        words.value[at] = value;
        words.difference[at] = difference;
    }
}

ty_status encode_words(ty_atomic_txn &txn, const stm::write_set &writes) {
    record_words &words = txn.words;
    words.count = 0;
    for (const stm::written_word &written : writes) {
        const uint64_t before = load_word(written.word), now = value_of(written, before);
        if (now == before || !is_in_blocks(*txn.all, written.word))
            continue;
        words.number[words.count] = word_at(*txn.all, written.word);
        words.value[words.count] = now;
        words.difference[words.count++] = now ^ before;
    }
    txn.record_bytes = 0;
    if (words.count == 0)
        return TY_OK;
    sort_words(words);
    if (ty_status status = txn.record.provide(record_words_bound(words.count)))
        return status;
    txn.record_bytes = record_encode_words(words, txn.record.begin());
    return TY_OK;
}

// ---- All others

bool by_word(const block_note &a, const block_note &b) {
    return a.word < b.word;
}

// The block of the sorted notes in which the word lies.
const block_note *block_around(const block_note *first, const block_note *end, uint64_t word) {
    const block_note *after = std::upper_bound(first, end, block_note{word, 0}, by_word);
    if (after == first)
        return nullptr;
    const block_note *found = after - 1;
    return word - found->word < found->words ? found : nullptr;
}

// What the record consists of: operations, sorted notes, and the places of words with their old and new values.
struct record_maker {
    ty_atomic_txn &txn;
    const stm::write_set &writes;
    block_note *made = nullptr; // allocated, and not freed again
    size_t made_count = 0;
    block_note *gone = nullptr; // freed
    size_t gone_count = 0;
    record_operation *operations = nullptr;
    size_t operation_count = 0;
    word_range *ranges = nullptr;
    size_t range_count = 0;
    uint64_t *word_numbers = nullptr;
    uint64_t *before = nullptr;
    uint64_t *now = nullptr;
    size_t word_count = 0;

    ty_status run();

private:
    ty_status provide();
    void sort_blocks();
    void add_operations();
    void add_block_contents();
    void add_words();
    void make_ranges();
};

ty_status record_maker::provide() {
    uint64_t contents = writes.count();
    for (const block_note &allocated : txn.allocs)
        contents += allocated.words;
    if (contents > record_words_worth_making)
        return TY_E_SPACE;
    const size_t blocks = txn.allocs.count() + txn.frees.count(), words = writes.count();
    const size_t bytes = blocks * sizeof(block_note) + (blocks + txn.roots.count()) * sizeof(record_operation) +
                         (words + txn.allocs.count()) * sizeof(word_range) + 3 * words * sizeof(uint64_t);
    if (ty_status status = txn.sorting.provide(bytes))
        return status;
    uint8_t *at = txn.sorting.begin();
    auto take = [&at](auto *&array, size_t count) {
        array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(at);
        at += count * sizeof *array;
    };
    take(made, txn.allocs.count());
    take(gone, txn.frees.count());
    take(operations, blocks + txn.roots.count());
    take(ranges, words + txn.allocs.count());
    take(word_numbers, words);
    take(before, words);
    take(now, words);
    return TY_OK;
}

void record_maker::sort_blocks() {
    for (const block_note &freed : txn.frees)
        gone[gone_count++] = freed;
    std::sort(gone, gone + gone_count, by_word);
    for (const block_note &allocated : txn.allocs)
        if (!std::binary_search(gone, gone + gone_count, allocated, by_word))
            made[made_count++] = allocated;
    std::sort(made, made + made_count, by_word);
}

void record_maker::add_operations() {
    for (size_t i = 0; i < made_count; i++)
        operations[operation_count++] = {
            operation_kind::alloc, made[i].word, made[i].words * 8, 0, 0, false, nullptr, 0};
    for (size_t i = 0; i < gone_count; i++) {
        bool own = false;
        for (const block_note &allocated : txn.allocs)
            own |= allocated.word == gone[i].word;
        if (!own)
            operations[operation_count++] = {operation_kind::free, gone[i].word, 0, 0, 0, false, nullptr, 0};
    }
    for (const root_note &root : txn.roots) {
        if (root.address == root.before)
            continue;
        const uint64_t word = root.address != nullptr ? word_at(*txn.all, root.address) : 0;
        operations[operation_count++] = {operation_kind::root,
                                         word,
                                         0,
                                         0,
                                         0,
                                         root.address == nullptr,
                                         root.name,
                                         static_cast<uint32_t>(strlen(root.name))};
    }
}

// No other thread knows an allocated block: what is stored to it can be there already.
void record_maker::add_words() {
    for (const stm::written_word &written : writes) {
        if (written.mask == 0 || !is_in_blocks(*txn.all, written.word))
            continue;
        const uint64_t word = word_at(*txn.all, written.word);
        const uint64_t held = load_word(written.word), will = value_of(written, held);
        if (block_around(made, made + made_count, word) != nullptr)
            __atomic_store_n(written.word, will, __ATOMIC_RELAXED);
        else if (will != held && block_around(gone, gone + gone_count, word) == nullptr)
            word_numbers[word_count++] = word;
    }
    std::sort(word_numbers, word_numbers + word_count);
    for (size_t i = 0; i < word_count; i++) {
        uint64_t *word = static_cast<uint64_t *>(address_of(*txn.all, word_numbers[i]));
        before[i] = load_word(word);
        now[i] = value_of(*writes.find(word), before[i]);
    }
}

void record_maker::make_ranges() {
    constexpr uint64_t piece_max = uint64_t{1} << 30;
    size_t block = 0;
    auto add_blocks_before = [&](uint64_t word) {
        for (; block < made_count && made[block].word < word; block++)
            ranges[range_count++] = {made[block].word, static_cast<uint32_t>(made[block].words), false, nullptr,
                                     static_cast<const uint64_t *>(address_of(*txn.all, made[block].word))};
    };
    for (size_t i = 0; i < word_count;) {
        size_t end = i + 1;
        while (end < word_count && word_numbers[end] == word_numbers[end - 1] + 1 && end - i < piece_max)
            end++;
        add_blocks_before(word_numbers[i]);
        ranges[range_count++] = {word_numbers[i], static_cast<uint32_t>(end - i), false, before + i, now + i};
        i = end;
    }
    add_blocks_before(UINT64_MAX);
}

ty_status record_maker::run() {
    if (ty_status status = provide())
        return status;
    sort_blocks();
    add_operations();
    add_words();
    make_ranges();
    const record_part part{operations, operation_count, ranges, range_count};
    if (ty_status status = txn.record.provide(record_bound(part)))
        return status;
    txn.record_bytes = record_encode(part, true, txn.record.begin());
    return TY_OK;
}

ty_status encode(ty_atomic_txn &txn, const stm::write_set &writes) {
    ty_status status;
    if (writes.count() <= record_words_max && !blocks_touched(txn))
        status = encode_words(txn, writes);
    else
        status = record_maker{txn, writes}.run();
    if (status == TY_OK && txn.record_bytes == 0) {
        if ((status = txn.record.provide(1)) == TY_OK)
            *txn.record.begin() = void_record;
        txn.record_bytes = 1;
    }
    return status;
}

// ---- In place of a record: the old values of the words, so that a failure can restore them

ty_status keep_words(ty_atomic_txn &txn, const stm::write_set &writes) {
    if (ty_status status = txn.sorting.provide(writes.count() * sizeof(uint64_t)))
        return status;
    uint64_t *held = txn.sorting.as<uint64_t>();
    for (const stm::written_word &written : writes)
        *held++ = load_word(written.word);
    return TY_OK;
}

void put_words_back(ty_atomic_txn &txn, const stm::write_set &writes) {
    const uint64_t *held = txn.sorting.as<uint64_t>();
    for (const stm::written_word &written : writes)
        __atomic_store_n(written.word, *held++, __ATOMIC_RELEASE);
}

// ---- The recorder

// Takes the thread's own log stream, or one that no other thread has just now. Threads that wait for the disk share the
// first: so one write serves all of them.
ty_status reserve_record(ty_atomic_txn &txn, taiyen::log *log) {
    const uint32_t count = log_streams(log), own = txn.mode == TY_COMMIT_SYNC ? 0 : txn.stream % count;
    for (uint32_t i = 0; i < count && txn.mode != TY_COMMIT_SYNC; i++) {
        txn.ring = (own + i) % count;
        ty_status status = log_append_begin(log, txn.ring, txn.record_bytes, &txn.reserved, log_turn::try_once);
        if (status != TY_E_BUSY && status != TY_E_SPACE)
            return status;
    }
    txn.ring = own;
    return log_append_begin(log, own, txn.record_bytes, &txn.reserved);
}

// X23: timestamps rise in the log, as the place is held until the record has its timestamp.
ty_status append_later(ty_atomic_txn &txn, const stm::write_set &writes) {
    taiyen::log *log = txn.all->rt->log;
    ty_status status = encode(txn, writes);
    txn.too_long = status == TY_E_SPACE || (status == TY_OK && txn.record_bytes > log_record_max(log));
    if (txn.too_long)
        return TY_E_SPACE;
    if (status != TY_OK)
        return status;
    status = reserve_record(txn, log);
    txn.appending = status == TY_OK;
    txn.log_failed = status != TY_OK;
    return status;
}

ty_status prepare_record(ty_atomic_txn &txn, const stm::write_set &writes) {
    ty_status status = append_later(txn, writes);
    if (status == TY_OK || !txn.has_rwlock || (status != TY_E_SPACE && !log_broken(txn.all->rt->log)))
        return status;
    txn.way = commit_way::snapshot;
    return keep_words(txn, writes);
}

// X24: holds the registration latch from before the timestamp on.
ty_status prepare(void *, stm::transaction &own) {
    ty_atomic_txn &txn = txn_of(own);
    const bool touched = blocks_touched(txn);
    if (touched) {
        latch_enter_in_txn(txn);
        if (ty_status status = blocks_prepare(txn)) {
            latch_leave(txn);
            return status;
        }
    }
    ty_status status = txn.all->rt != nullptr ? prepare_record(txn, own.writes()) : TY_OK;
    if (status != TY_OK && touched)
        blocks_finish_commit(txn, 0, false);
    // A snapshot that holds this commit closes the latch itself.
    if (touched && (status != TY_OK || txn.way == commit_way::snapshot))
        latch_leave(txn);
    return status;
}

void append(ty_atomic_txn &txn, uint64_t timestamp, bool valid) {
    size_t bytes = txn.record_bytes;
    if (timestamp == 0) {
        bytes = 0;
    } else if (!valid) {
        *txn.reserved = void_record;
        bytes = 1;
    } else {
        memcpy(txn.reserved, txn.record.begin(), bytes);
    }
    const bool independent = txn.mode == TY_COMMIT_STREAM && valid && !blocks_touched(txn);
    log_append_end(txn.all->rt->log, txn.ring, bytes, timestamp, independent);
    txn.independent = independent;
    txn.appending = false;
    if (bytes == 0)
        return;
    txn.records.store(txn.records.load(std::memory_order_relaxed) + valid, std::memory_order_relaxed);
    txn.logged_bytes.store(txn.logged_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    txn.bytes_since += bytes;
}

void record(void *, stm::transaction &own, uint64_t timestamp, bool valid) {
    ty_atomic_txn &txn = txn_of(own);
    if (txn.appending)
        append(txn, timestamp, valid);
    if (!blocks_touched(txn))
        return;
    if (txn.way != commit_way::snapshot) {
        blocks_finish_commit(txn, timestamp, valid);
        latch_leave(txn);
    } else if (!valid) {
        blocks_finish_commit(txn, 0, false);
    }
}

ty_status stored(void *, stm::transaction &own, uint64_t timestamp) {
    ty_atomic_txn &txn = txn_of(own);
    if (txn.way != commit_way::snapshot)
        return TY_OK;
    uint64_t lsn = 0;
    if (ty_status status = snapshot_instead(*txn.all->rt, true, &lsn)) {
        put_words_back(txn, own.writes());
        if (blocks_touched(txn))
            blocks_finish_commit(txn, 0, false);
        if (!log_broken(txn.all->rt->log)) // X23: the timestamp is in no record, so it must lie before the next
                                           // snapshot's snapshot LSN
            log_break(txn.all->rt->log, status);
        return status;
    }
    if (blocks_touched(txn)) {
        latch_enter(txn);
        blocks_finish_commit(txn, timestamp, true);
        latch_leave(txn);
    }
    return TY_OK;
}

// X26: the blocks of what is rolled back are free before the transaction ends.
void discard(void *, stm::transaction &own) {
    ty_atomic_txn &txn = txn_of(own);
    if (blocks_touched(txn))
        blocks_back_to(txn, {0, 0, 0, 0});
}

} // namespace

ty_status scratch::provide(size_t bytes) {
    if (bytes <= room_)
        return TY_OK;
    const size_t wanted = bytes < 256 ? 256 : bytes + bytes / 2;
    free(bytes_);
    bytes_ = static_cast<uint8_t *>(os::internal_malloc(wanted));
    room_ = bytes_ != nullptr ? wanted : 0;
    if (bytes_ == nullptr)
        return failure(TY_E_MEMORY, "make the record of a transaction: %zu bytes", wanted)
            .remedy("make it store less at once");
    return TY_OK;
}

void scratch::release() {
    free(bytes_);
    bytes_ = nullptr;
    room_ = 0;
}

stm::recorder recorder_of(concurrent_heap &all) {
    return {&all, prepare, record, all.rt != nullptr ? stored : nullptr, discard, all.rt != nullptr};
}

} // namespace taiyen
