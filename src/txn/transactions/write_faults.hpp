// Write-fault tracking: the heap's blocks are write-protected, and the first write to a page within a transaction keeps
// a before-image of it. Tracked transactions log what differs from the before-images; ty_open_options.check_stores
// reports what differs and was not declared. docs/design/txn.md, "Write-fault tracking".
//
// A1: while before-images are taken, no word of a page in a block changes before the page has a before-image; except
//     pages that lie whole in a block of the transaction, of which the record knows every word anyway.
// A2: a before-image is what its page held when the transaction began; one is kept per page until the transaction ends.
// A3: only words of live blocks that are not reserved are compared, logged and rolled back. Words of reserved blocks
//     are other threads', and free memory may lie where recovery has no memory in use.
// A4: no thread that serves a fault takes an ended transaction for under way when the next one begins, or one for not
//     begun when its begin has returned.
#pragma once

#include "transaction.hpp"

namespace taiyen {

// Unless a comment says otherwise, the transaction holds the reader-writer lock.

// Takes before-images from now on. The first time, arms the heap's memory. Expected: TY_E_MEMORY, TY_E_UNSUPPORTED,
// TY_E_BUSY (another guard has a part of the heap's memory).
ty_status write_faults_begin(txn_runtime &rt);
// Stops taking before-images, and drops those there are.
void write_faults_end(txn_runtime &rt);
// The part of write_faults_end that the transaction's thread must do itself.
void write_faults_leave(txn_runtime &rt);

bool write_faults_has_before_images(const txn_runtime &rt);
// Makes memory writable, as writes would, for system calls: those do not fault.
ty_status write_faults_make_writable(txn_runtime &rt, const void *address, size_t bytes);
// The same for a block that the transaction has allocated: its pages need no before-images.
void write_faults_touch_own(txn_runtime &rt, const void *block, size_t bytes);

// The ranges that a record has to compare: where pages differ from their before-images, and those of the range cache,
// which take precedence. In rising order, disjoint; valid until the next call.
ty_status write_faults_ranges(ty_txn *txn, const range_entry **ranges, size_t *count);
// Restores the content of the before-images. Called after everything else that a rollback restores.
void write_faults_rollback(txn_runtime &rt);

// ---- check_stores: undeclared_writes.cpp reports, write_faults.cpp compares

// Reports what a declared transaction has changed and not declared. Called before its frees, or its rollback, are done.
void undeclared_stores_in(ty_txn *txn);
// Reports a store outside any transaction: in the fault handler.
void undeclared_store_outside(const txn_runtime &rt, const void *address, const void *instruction);

struct before_image_difference {
    range_entry words; // from the first that differs to the end of its block or page; before: in the before-image
    ty_block block;
};
// Visits the places where live blocks differ from their pages' before-images, in rising order, with the reservations
// locked (A3: only words of live blocks that are not reserved are compared).
using difference_function = ty_status (*)(void *context, const before_image_difference &found);
ty_status write_faults_each_difference(txn_runtime &rt, difference_function found, void *context);
// The first word of [at, end) that differs; end if none does. Other threads may write to the memory.
uint64_t next_difference(const uint64_t *now, const uint64_t *before, uint64_t at, uint64_t end);

// ---- For reservations, under their lock, from any thread

// Notes that a block is reserved, or no longer: stores into a reserved block are not checked.
void write_faults_reserved(txn_runtime &rt, uint64_t word, uint64_t words, bool reserved);

// While it lives, stores of this thread are the library's own, and never undeclared writes.
class library_stores {
public:
    library_stores();
    ~library_stores();
    library_stores(const library_stores &) = delete;
    library_stores &operator=(const library_stores &) = delete;
};

} // namespace taiyen
