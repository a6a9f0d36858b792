// The one transaction of a heap: what it has done so far, and the steps of its end. Its memory is kept from one
// transaction to the next.
#pragma once

#include "../changes/changes.hpp"
#include "txn_runtime.hpp"

namespace taiyen {

// A block that the transaction allocated, published, resized or freed. Sizes in words.
//
// X8: a byte that a block may have got by a resize is declared by the library, and is zero if it had been cut off
//     before. The size that was last asked for is not recorded: so this holds from heap_least_bytes on, and for all
//     that the transaction has cut off and returns. Otherwise a recovery would restore the byte as it was at an earlier
//     commit.
struct touched_block {
    uint64_t word;
    uint64_t words;        // its size in the heap
    uint64_t words_before; // when the transaction began; 0: it was not there, or was reserved
    uint64_t words_logged; // its size after the parts of the record that are encoded; 0: nothing
    uint64_t words_wanted; // after the commit; 0: free
    uint64_t declared;     // for a block that was allocated: range_cache::stamp() then
    bool published;
    bool scoped; // allocated by the malloc of a scope (M11)

    bool own() const { return words_before == 0 && !published; } // its rollback frees it
};

// The addresses of a block that a scope has allocated: in the transaction that is rolled back, or kept by an earlier
// rollback (M11: what a rollback takes back and the process leads to is reused for nothing else).
struct scoped_memory {
    uintptr_t begin, end;
    bool kept;
    bool reached; // a pointer of the process leads to it
};

struct touched_root {
    char name[TY_ROOT_NAME_MAX + 1];
    void *before;
    void *logged;
    void *now;
};

// An explicit rollback entry: bytes that are put back, or a procedure.
struct rollback_entry {
    size_t ranges;      // number of entries of the range cache before it
    uint64_t procedure; // 0: bytes
    char *address;
    size_t payload; // offset in payloads
    size_t bytes;
};

// A growing array in an arena.
template <class T>
struct txn_array {
    arena memory;
    size_t count;

    T *begin() const { return memory.as<T>(); }
    T *end() const { return memory.as<T>() + count; }
    ty_status push(const T &element) {
        if (ty_status status = memory.provide((count + 1) * sizeof(T)))
            return status;
        memory.as<T>()[count++] = element;
        return TY_OK;
    }
};

// The address of a thread-local object: identifies the thread.
inline uintptr_t this_thread() {
    static thread_local char redo_point;
    return reinterpret_cast<uintptr_t>(&redo_point);
}

} // namespace taiyen

struct ty_txn {
    std::atomic<uintptr_t> owner; // the thread that began it, or prepared_owner; 0: none is under way. Written with the
                                  // reader-writer lock held
    std::atomic<uintptr_t> preparer; // the thread that prepared it: it must not wait for its end. 0: none
    taiyen::range_cache ranges;      // from here: the owner's
    taiyen::txn_runtime *rt;
    bool free_later;
    bool tracked;             // its stores are tracked
    bool by_default;          // the store mode was not given at its begin
    bool takes_before_images; // before-images are taken: it is tracked, or stores are checked
    bool in_dtxn;             // it is part of a distributed transaction, which ends it
    bool scoped;              // scopes have allocated in it
    uint64_t prepared;        // the LSN of its prepared record, once appended; 0: not prepared
    const void *description;  // while it is being prepared
    size_t description_bytes;

    taiyen::word_table block_numbers; // by word: index in blocks
    taiyen::txn_array<taiyen::touched_block> blocks;
    taiyen::txn_array<taiyen::touched_root> roots;
    taiyen::txn_array<taiyen::rollback_entry> rollbacks;
    taiyen::txn_array<char> payloads; // of rollback entries and procedures
    taiyen::txn_array<taiyen::fair_rwlock *> objects;

    taiyen::txn_array<uint8_t> parts; // of the record: those that procedures ended
    bool has_procedure;               // the current part begins with one
    uint64_t procedure;
    size_t procedure_payload;
    size_t procedure_bytes;

    // For rollbacks (kept_blocks.cpp).
    taiyen::txn_array<taiyen::scoped_memory> rolled_back; // in order of address
    taiyen::txn_array<uint32_t> to_read;                  // indexes of those that are reached
    taiyen::txn_array<const void *> reported_variables;   // variables that were reported since the open

    // Working memory of a commit.
    taiyen::txn_array<taiyen::record_operation> operations;
    taiyen::txn_array<taiyen::word_range> words;
    taiyen::txn_array<taiyen::word_range> overlays;
    taiyen::txn_array<taiyen::range_entry> found; // write_faults.cpp
    taiyen::record_words changed;
    taiyen::arena encoded;
};

namespace taiyen {

// The owner of a transaction that is prepared: any thread may take it over to end it, and then is its owner. Not an
// address.
inline constexpr uintptr_t prepared_owner = 1;

// Refuses a thread that is not in the transaction. call completes "cannot ...".
[[gnu::cold]] ty_status not_in_transaction(const ty_txn *txn, const char *call);
inline ty_status check_owner(const ty_txn *txn, const char *call) {
    if (txn->owner.load(std::memory_order_relaxed) == this_thread()) [[likely]]
        return TY_OK;
    return not_in_transaction(txn, call);
}

// Words that the bytes touch; refuses bytes outside the heap's blocks, unless there are 0.
struct word_span {
    uint64_t first;
    uint64_t count;
};
ty_status words_of(ty_txn *txn, const char *call, const void *address, size_t bytes, word_span *words);
// Declares words of the heap's blocks.
ty_status declare_words(ty_txn *txn, uint64_t first, uint64_t count);

inline uint64_t word_at(const txn_runtime &rt, const void *address) {
    return (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(rt.base)) / 8;
}
inline char *address_of(const txn_runtime &rt, uint64_t word) {
    return rt.base + word * 8;
}

// ---- transaction.cpp

struct committed {
    uint64_t lsn; // 0: nothing had changed, until the commit sets it to the last one before
    bool by_snapshot;
};
// Appends the record, with the head of a prepared one if there is a description. *lsn 0: nothing has changed, and
// nothing is appended. TY_E_SPACE: the log has no room.
ty_status transaction_append(ty_txn *txn, uint64_t *lsn);
// Ends the transaction: makes its memory ready for the next one, and releases the reader-writer lock.
void transaction_finish(ty_txn *txn);

// Encodes the same record, without a head, in the transaction's memory. size 0: nothing has changed. The changes stay
// the transaction's own.
ty_status transaction_encode(ty_txn *txn, const uint8_t **bytes, size_t *size);

// ---- prepared.cpp

// For a thread that ends a transaction: takes over one that is prepared. Any other one must be its own.
ty_status take_prepared(ty_txn *txn, const char *call);
// After a failed commit: any thread may take over a prepared transaction again, and the status says so.
ty_status leave_prepared(ty_txn *txn, ty_status status);
ty_status append_outcome(txn_runtime &rt, record_outcome outcome, uint64_t *lsn);
// X28: a prepared transaction counts if and only if its outcome says so. If the log cannot take the rollback, it takes
// nothing more before a snapshot.
void append_rollback(ty_txn *txn);
// A thread that has prepared a transaction would wait for itself. call completes "cannot ...".
bool has_prepared(const txn_runtime &rt);
ty_status refuse_own_prepared(const txn_runtime &rt, const char *call);

// ---- blocks.cpp

// After the commit's append: frees and shrinks blocks. by_snapshot: blocks_list was called. If it fails, the heap's
// tables are damaged; the rest is done.
ty_status blocks_finish_commit(ty_txn *txn, bool by_snapshot);
// Rolls back all that was done to blocks and roots.
ty_status blocks_rollback(ty_txn *txn);
// Before a snapshot that holds the transaction in place of a record: lists what the commit frees as reserved, so that a
// recovery from it frees it, and unlists what it publishes. The part that a shrunk block gives up is split off, and
// listed.
ty_status blocks_list(ty_txn *txn);
void blocks_unlist(ty_txn *txn); // undoes all of that

// The block, if a scope of the transaction has allocated it and the program has not freed it; else NULL.
const touched_block *scoped_block(const ty_txn *txn, uint64_t word);
// Removes the block from the transaction: a rollback leaves it alone.
void block_leave(ty_txn *txn, uint64_t word);

// ---- kept_blocks.cpp

// M11: before anything is rolled back, keeps the blocks that the process leads to. *found: the dangling words to report
// when the transaction is over.
void blocks_keep(ty_txn *txn, dangling_words *found);

// ---- part.cpp

// Collects the record's current part in the transaction's memory. last: with frees and shrinks, which come with the
// commit.
ty_status part_collect(ty_txn *txn, bool last, record_part *part);
// Ends the part, so that a procedure can follow.
ty_status part_close(ty_txn *txn);

// ---- explicit_entries.cpp

// Restores what was declared, and runs the rollback entries in between. Returns the first failure of a procedure.
ty_status memory_rollback(ty_txn *txn);

// ---- reserve.cpp: what a transaction does with reserved blocks

// Refuses blocks that the program must not free or resize: reserved ones, and the library's own.
ty_status check_not_reserved(txn_runtime &rt, const char *call, const void *block);
// Finds a live block of the program's: its bytes, and whether it is an extent. Atomic: threads that reserve, cancel or
// free later would change both answers.
ty_status find_unreserved(txn_runtime &rt, const char *call, const void *block, size_t *bytes, bool *is_extent);
// Publishes all count blocks or, on a failure, none; their sizes in words go to the touched blocks.
ty_status reserved_take(txn_runtime &rt, void *const *blocks, size_t count);
// Reserves the block again, with this many words: the part by which the transaction made it grow is released.
ty_status reserved_put_back(txn_runtime &rt, uint64_t word, uint64_t words);
// The block is an ordinary one from now on.
void reserved_forget(txn_runtime &rt, uint64_t word);
// Lists a block that a snapshot holds and a commit frees; reserved_unlist removes it.
ty_status reserved_list(txn_runtime &rt, uint64_t word);
void reserved_unlist(txn_runtime &rt, uint64_t word);
// Takes a published block off the list for a while; its place there is kept.
void reserved_hide(txn_runtime &rt, uint64_t word);
void reserved_show(txn_runtime &rt, uint64_t word);
// Lists a block that a commit freed and whose free is deferred: the program must not use it any more. Expected:
// TY_E_MEMORY.
ty_status reserved_leave(txn_runtime &rt, uint64_t word);
ty_status reserved_free(txn_runtime &rt, void *block); // frees it
// M11: lists blocks that a rollback keeps, as reserved ones that only an explicit free releases. Expected: TY_E_MEMORY.
ty_status reserved_keep(txn_runtime &rt, uint64_t word, uint64_t words);
bool reserved_kept(txn_runtime &rt, uint64_t word);
ty_status reserved_free_kept(txn_runtime &rt, uint64_t word);
uint64_t reserved_kept_bytes(const txn_runtime &rt);
ty_status reserved_list_kept(txn_runtime &rt, ty_status (*visit)(void *context, uint64_t word, uint64_t words),
                             void *context);          // under the lock
void reserved_let_go(txn_runtime &rt, uint64_t word); // frees it if it was listed
uint64_t reserved_count(const txn_runtime &rt);

// ---- reservations.cpp

// Whether the block is reserved, published by the transaction, or the library's own. Takes the lock, so not called in a
// fault handler, which uses guarded_page::reserved.
bool reserved_any(const txn_runtime &rt, uint64_t word);
// The same at this moment, for a thread that must not wait for a snapshot's start.
bool reserved_now(txn_runtime &rt, uint64_t word);
// Calls write_faults_reserved for all reserved blocks. Under the lock.
void reservations_count_pages(txn_runtime &rt);

// ---- readers.cpp

bool in_section(const txn_runtime &rt); // whether this thread is in one
void sections_end(txn_runtime &rt);     // all that this thread has open on the heap
ty_status objects_create(txn_runtime &rt);
void objects_destroy(txn_runtime &rt);
void objects_unlock(ty_txn *txn);

} // namespace taiyen
