// The reserved blocks of a heap, in memory, and the list of them in the heap (X3: every snapshot lists the reserved
// blocks).
//
// The list is a chain of blocks from the heap's service root; they are never freed while there is a log. Each place
// holds the word number of a block that is allocated in the heap's tables and must not be after a recovery, or 0.
#pragma once

#include "write_faults.hpp"

namespace taiyen {

constexpr size_t list_block_bytes = 4000; // a size class, less than a page: a list of one block wastes nothing
constexpr size_t list_places = list_block_bytes / 8 - 2;
constexpr uint64_t list_magic = reservations_magic;

struct list_block {
    uint64_t magic;
    uint64_t next; // word number of the next one; 0: the last
    uint64_t places[list_places];
};
static_assert(sizeof(list_block) == list_block_bytes);

enum class reserved_state : uint8_t {
    reserved,
    published, // by the transaction under way
    freeing, // a transaction frees it, and a snapshot that holds that transaction is under way; or its free is deferred
    of_list, // a block of the list itself
    rolled_back, // a rollback left it to the variables that lead to it (M11)
};

struct reservation {
    uint64_t word;   // 0: not in use
    uint64_t *place; // in the list; NULL: not listed
    uint64_t words;  // of the block; 0: in use, but not as a reserved block
    reserved_state state;
    bool listed;        // for a rolled-back one: reserved_list_kept has visited it
    uint32_t next_free; // index of the next free entry
};

struct reservations {
    os::mutex lock{os::lock_rank::reservations};
    os::mutex table_lock{os::lock_rank::deferred_frees}; // after lock, for threads that change numbers
    word_table numbers; // from here: guarded by lock; numbers may be read under table_lock alone
    txn_array<reservation> entries;
    uint32_t first_free;
    txn_array<uint64_t *> free_places;
    list_block *last;                 // of the list; NULL: none
    std::atomic<uint64_t> count;      // of reserved, published and kept blocks; read without lock
    std::atomic<uint64_t> kept_bytes; // likewise
};

// All of these under the lock.
reservation *find_reservation(reservations &r, uint64_t word);
ty_status enter_reservation(txn_runtime &rt, uint64_t word, uint64_t words, uint64_t *place, reserved_state state);
// The same, and in the list.
ty_status enter_listed(txn_runtime &rt, uint64_t word, uint64_t words, reserved_state state);
// Clears its place in the list, which is then free for another.
void leave_reservation(txn_runtime &rt, reservation *entry);

} // namespace taiyen
