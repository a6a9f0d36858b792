// How changes reach the heap under test: by plain calls and stores, recorded for an undo, or as parts of a transaction,
// in all the ways in which a store can be declared.
#pragma once

#include "dice.hpp"

#include <cstring>
#include <set>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

namespace crash {

class editor {
public:
    explicit editor(ty_heap *heap) : heap_(heap) {}
    // style decides how a store is declared; check_stores: every store is announced
    editor(ty_txn *txn, dice &style) : heap_(ty_txn_heap(txn)), txn_(txn), style_(&style) {}

    // All is recorded for an undo. style decides what is recorded without need.
    editor(ty_heap *heap, dice &style) : heap_(heap), style_(&style) {}

    ty_heap *heap() const { return heap_; }
    bool in_transaction() const { return txn_ != nullptr; }

    void *alloc(uint64_t size);
    void *alloc_zeroed(uint64_t size);
    void *alloc_aligned(uint64_t size, uint64_t alignment);
    void *resize(void *block, uint64_t size);
    ty_status free(void *block);
    // A block got these bytes by a resize.
    void grew(const void *address, uint64_t bytes);
    ty_status set_root(const char *name, void *address);
    ty_status publish(const std::vector<void *> &blocks);

    // The bytes will be written. Before a store of any kind.
    void announce(void *address, uint64_t bytes);
    template <class Value>
    void store(Value *place, Value value) {
        announce(place, sizeof value);
        *place = value;
    }
    // A procedure that undoes itself will be run.
    void procedure(uint64_t id, const void *arguments, uint64_t bytes);

    // What no storage fault excuses: the first is kept.
    void check(ty_status status, const char *call);
    const std::string &problem() const { return problem_; }

private:
    bool records() const { return !txn_ && style_; } // for an undo
    bool is_fresh(const void *address) const;
    void *note_fresh(void *made, uint64_t size);
    void forget_fresh(const void *block, uint64_t usable);
    void announce_to_undo(const void *address, uint64_t bytes);

    ty_heap *heap_;
    ty_txn *txn_ = nullptr;
    dice *style_ = nullptr;
    std::set<std::pair<uint64_t, uint64_t>> fresh_; // blocks of this transaction: address, size
    std::string problem_;
};

} // namespace crash
