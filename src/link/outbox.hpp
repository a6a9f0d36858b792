// Outboxes and inboxes: declarations shared by their files. docs/design/outbox.md describes how they work.
#pragma once

#include "link.hpp"

namespace taiyen {

// A read section of the heap; with `within`, the thread's transaction instead, if it has one.
class heap_reader {
public:
    explicit heap_reader(ty_heap *heap, bool within = false) : heap_(heap) {
        is_open_ = !(within && txn_current(heap));
        status_ = is_open_ ? txn_read_begin(heap) : TY_OK;
    }
    ~heap_reader() { end(); }
    heap_reader(const heap_reader &) = delete;
    heap_reader &operator=(const heap_reader &) = delete;

    ty_status status() const { return status_; }
    void end() {
        if (is_open_ && !status_)
            txn_read_end(heap_);
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
    void *address = heap_root(heap, root);
    *head = nullptr;
    if (!address)
        return TY_OK;
    ty_block block;
    if (!heap_find_block(heap, address, &block) || block.address != address || block.size_bytes < sizeof(Head) ||
        memcmp(address, magic, 8) != 0)
        return failure(TY_E_DAMAGED, "look up the root %s: it leads to something else", root)
            .at(image_path(heap))
            .remedy("take the root away, if it is the program's own");
    *head = static_cast<Head *>(address);
    *block_bytes = block.size_bytes;
    return TY_OK;
}

} // namespace taiyen
