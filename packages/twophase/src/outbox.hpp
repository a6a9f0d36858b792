// Outboxes and inboxes: declarations shared by their files. docs/design/outbox.md describes how they work.
#pragma once

#include "support.hpp"

namespace taiyen::twophase {

// ---- The functions of outbox.h, with checked arguments

ty_status outbox_make(ty_txn *txn, const char *name, size_t bytes);
ty_status outbox_remove(ty_txn *txn, const char *name);
ty_status outbox_put(ty_txn *txn, const char *name, const void *bytes, size_t size, uint64_t *number);
ty_status outbox_read(ty_heap *heap, const char *name, uint64_t after, ty_message_callback *callback, void *context);
ty_status outbox_wait(ty_heap *heap, const char *name, uint64_t after, uint32_t timeout_ms, bool *more);
ty_status outbox_forget(ty_txn *txn, const char *name, uint64_t through);
ty_status outbox_get_info(ty_heap *heap, const char *name, ty_outbox_info *info);
ty_status inbox_take(ty_txn *txn, const char *source, uint64_t number, ty_taken *taken);
ty_status inbox_set(ty_txn *txn, const char *source, uint64_t number);
ty_status inbox_last(ty_heap *heap, const char *source, uint64_t *number);

// A read section of the heap; with `within`, the thread's transaction instead, if it has one.
class heap_reader {
public:
    explicit heap_reader(ty_heap *heap, bool within = false) : heap_(heap) {
        is_open_ = !(within && ty_current_txn(heap));
        status_ = is_open_ ? ty_read_begin(heap) : TY_OK;
    }
    ~heap_reader() { end(); }
    heap_reader(const heap_reader &) = delete;
    heap_reader &operator=(const heap_reader &) = delete;

    ty_status status() const { return status_; }
    void end() {
        if (is_open_ && !status_)
            ty_read_end(heap_);
        is_open_ = false;
    }

private:
    ty_heap *heap_;
    bool is_open_;
    ty_status status_;
};

// Finds the block that a root leads to, which begins with a magic of 8 bytes. NULL and TY_OK: there is no such root.
template <class Head>
ty_status find_after(ty_heap *heap, const char *root, const char *magic, Head **head, size_t *block_bytes) {
    void *address = ty_root(heap, root);
    *head = nullptr;
    if (!address)
        return TY_OK;
    ty_block block;
    if (!find_block(heap, address, &block) || block.address != address || block.size_bytes < sizeof(Head) ||
        memcmp(address, magic, 8) != 0)
        return failure(TY_E_DAMAGED, "look up the root %s: it leads to something else", root)
            .at(path_of(heap))
            .remedy("take the root away, if it is the program's own");
    *head = static_cast<Head *>(address);
    *block_bytes = block.size_bytes;
    return TY_OK;
}

} // namespace taiyen::twophase
