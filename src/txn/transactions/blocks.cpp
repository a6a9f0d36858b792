// Blocks and roots in a transaction: allocating at once, freeing and shrinking after the commit, and rolling that back.
#include "write_faults.hpp"

namespace taiyen {
namespace {

void *none(ty_status) {
    return nullptr; // the detail is set
}

ty_status freed_already(const char *call, const void *block) {
    return failure(TY_E_ARGUMENT, "%s %p: the transaction has freed it already", call, block)
        .remedy("free a block once");
}

touched_block *find_touched(ty_txn *txn, uint64_t word) {
    uint32_t number = txn->block_numbers.find(word);
    return number != word_table::none ? txn->blocks.begin() + number : nullptr;
}

ty_status touch(ty_txn *txn, const touched_block &block) {
    if (ty_status status = txn->blocks.push(block))
        return status;
    ty_status status = txn->block_numbers.insert(block.word, static_cast<uint32_t>(txn->blocks.count - 1));
    if (status != TY_OK)
        txn->blocks.count--;
    return status;
}

void forget(ty_txn *txn, touched_block *block) {
    txn->block_numbers.erase(block->word);
    const touched_block &last = txn->blocks.end()[-1];
    if (block != &last) {
        *block = last;
        txn->block_numbers.change(block->word, static_cast<uint32_t>(block - txn->blocks.begin()));
    }
    txn->blocks.count--;
}

// Notes the block that the program passes. Refuses blocks that the program must not change.
ty_status touch_live(ty_txn *txn, const char *call, void *address, touched_block **block) {
    txn_runtime &rt = *txn->rt;
    size_t bytes;
    bool is_extent;
    uint64_t word = word_at(rt, address);
    bool aligned = reinterpret_cast<uintptr_t>(address) % 8 == 0;
    if (aligned && heap_of(address) == rt.heap && (*block = find_touched(txn, word)) != nullptr)
        return (*block)->words_wanted != 0 ? TY_OK : freed_already(call, address);
    if (ty_status status = find_unreserved(rt, call, address, &bytes, &is_extent))
        return status;
    uint64_t words = bytes / 8;
    if (ty_status status = touch(txn, {word, words, words, words, words, 0, false, false}))
        return status;
    *block = txn->blocks.end() - 1;
    return TY_OK;
}

void *alloc_touched(ty_txn *txn, size_t size, size_t alignment) {
    const txn_runtime &rt = *txn->rt;
    size_t bytes;
    void *block = heap_alloc_whole(rt.heap, size, alignment, &bytes);
    if (block == nullptr && rt.concurrent != nullptr && rt.concurrent->give_back(*rt.concurrent))
        block = heap_alloc_whole(rt.heap, size, alignment, &bytes);
    if (block == nullptr)
        return nullptr;
    uint64_t words = bytes / 8;
    touched_block noted{word_at(rt, block), words, 0, 0, words, txn->ranges.stamp(), false, false};
    if (ty_status status = touch(txn, noted)) {
        static_cast<void>(heap_free(block)); // it was just allocated
        return none(status);
    }
    if (txn->takes_before_images)
        write_faults_touch_own(*txn->rt, block, bytes);
    return block;
}

// A block of this transaction that nothing else refers to is freed at once; any other after the commit (X2: an alloc of
// a record must find its place free on replay). A rollback entry may name any block.
ty_status free_touched(ty_txn *txn, touched_block *block) {
    uint64_t end = block->word + block->words;
    bool at_once = (block->own() || fault("freed_before_its_record_is_appended")) && block->words_logged == 0 &&
                   txn->rollbacks.count == 0 && !txn->ranges.may_touch(block->declared, block->word, end);
    if (!at_once) {
        block->words_wanted = 0;
        return TY_OK;
    }
    void *address = address_of(*txn->rt, block->word);
    forget(txn, block);
    return heap_free(address);
}

// X8: what a block may have got by a resize is in the record. From now on the program owns the block's memory up to
// `words`, of which it asked for `size` bytes. All of an own block is in the record anyway.
ty_status declare_gain(ty_txn *txn, const touched_block &block, size_t size, uint64_t words, bool is_extent) {
    const txn_runtime &rt = *txn->rt;
    uint64_t kept_bytes = block.words_wanted * 8;
    size_t least = heap_least_bytes(rt.heap, kept_bytes, is_extent);
    size_t zeros = size < kept_bytes ? size : kept_bytes;
    uint64_t first = (size < least ? size : least) / 8;
    if (first < words && !block.own() && !fault("grown_bytes_in_no_record"))
        if (ty_status status = declare_words(txn, block.word + first, words - first))
            return status;
    if (zeros < words * 8 && !fault("grown_bytes_keep_what_was_there"))
        memset(address_of(rt, block.word) + zeros, 0, words * 8 - zeros);
    return TY_OK;
}

// Grows the block in place. TY_E_MEMORY: there is no room.
ty_status grow_in_place(ty_txn *txn, touched_block *block, size_t size) {
    const txn_runtime &rt = *txn->rt;
    char *address = address_of(rt, block->word);
    size_t bytes;
    bool is_extent;
    if (ty_status status = heap_resize_in_place(address, size))
        return status;
    ty_status status = heap_block_at(rt.heap, "resize", address, &bytes, &is_extent);
    if (status == TY_OK)
        status = declare_gain(txn, *block, size, block->words, is_extent);
    if (status != TY_OK) {
        static_cast<void>(heap_resize_in_place(address, block->words * 8)); // it was just grown
        return status;
    }
    memset(address + block->words * 8, 0, bytes - block->words * 8);
    block->words = block->words_wanted = bytes / 8;
    return TY_OK;
}

// Resizes in place, within the block's memory.
ty_status resize_within(ty_txn *txn, touched_block *block, size_t size) {
    size_t bytes;
    bool is_extent;
    if (ty_status status =
            heap_block_at(txn->rt->heap, "resize", address_of(*txn->rt, block->word), &bytes, &is_extent))
        return status;
    uint64_t pages = size == 0 ? 1 : (size + os::page_bytes - 1) / os::page_bytes;
    uint64_t wanted = is_extent ? pages * (os::page_bytes / 8) : block->words;
    if (ty_status status = declare_gain(txn, *block, size, wanted, is_extent))
        return status;
    block->words_wanted = wanted;
    return TY_OK;
}

// M11: a scope's block from before the transaction does not grow in place.
ty_status resize_touched_in_place(ty_txn *txn, void *address, size_t size, bool scoped, touched_block **block) {
    if (ty_status status = check_owner(txn, "resize a block"))
        return status;
    if (ty_status status = touch_live(txn, "resize", address, block))
        return status;
    if (scoped && !(*block)->own() && size > (*block)->words * 8)
        return TY_E_MEMORY;
    return size > (*block)->words * 8 ? grow_in_place(txn, *block, size) : resize_within(txn, *block, size);
}

ty_status rollback_block(ty_txn *txn, const touched_block &block) {
    void *address = address_of(*txn->rt, block.word);
    if (block.published)
        return reserved_put_back(*txn->rt, block.word, block.words);
    if (block.own())
        return heap_free(address);
    return block.words > block.words_before ? heap_resize_in_place(address, block.words_before * 8) : TY_OK;
}

// A before-image may be older than what other threads stored while the blocks were reserved: a rollback restores the
// newer content from here.
ty_status keep_published(ty_txn *txn, size_t count) {
    size_t before = txn->ranges.put_barrier();
    for (const touched_block *block = txn->blocks.end() - count; block != txn->blocks.end(); block++) {
        if (ty_status status = txn->ranges.add(block->word, block->words)) {
            txn->ranges.cut(before);
            return status;
        }
    }
    return TY_OK;
}

ty_status rollback_roots(ty_txn *txn) {
    ty_status outcome = TY_OK;
    for (bool removals : {true, false}) // removals first, so that there is room for the others
        for (const touched_root &root : txn->roots)
            if (root.now != root.before && (root.before == nullptr) == removals)
                if (ty_status status = heap_root_set(txn->rt->heap, root.name, root.before))
                    outcome = status;
    return outcome;
}

uint64_t end_of(const touched_block &block) {
    return block.word + block.words_wanted;
}

// Makes the part that the commit cuts off a block of its own: listed before it is one, as the list may need memory.
ty_status list_end(txn_runtime &rt, const touched_block &block) {
    if (ty_status status = reserved_list(rt, end_of(block)))
        return status;
    ty_status status = heap_split_extent(rt.heap, address_of(rt, block.word), block.words_wanted * 8);
    if (status != TY_OK)
        reserved_unlist(rt, end_of(block));
    return status;
}

void unlist(txn_runtime &rt, const touched_block *blocks, size_t count) {
    for (const touched_block *block = blocks; block != blocks + count; block++) {
        if (block->words_wanted == 0) {
            if (!block->published)
                reserved_unlist(rt, block->word);
            continue;
        }
        if (block->published)
            reserved_show(rt, block->word);
        if (block->words_wanted < block->words) {
            reserved_unlist(rt, end_of(*block));
            if (!fault("cut_end_lost_after_a_failed_commit"))
                static_cast<void>(
                    heap_join_extents(rt.heap, address_of(rt, block->word))); // undoes the split of list_end
        }
    }
}

} // namespace

void *txn_alloc(ty_txn *txn, size_t size, size_t alignment) {
    if (ty_status status = check_owner(txn, "allocate a block"))
        return none(status);
    return alloc_touched(txn, size, alignment);
}

ty_status txn_alloc_at(ty_txn *txn, void *address, size_t size) {
    constexpr const char *call = "allocate a block at an address";
    const txn_runtime &rt = *txn->rt;
    size_t bytes;
    bool is_extent;
    if (ty_status status = check_owner(txn, call))
        return status;
    if (ty_status status = heap_alloc_at(rt.heap, address, size))
        return status;
    ty_status status = heap_block_at(rt.heap, call, address, &bytes, &is_extent);
    if (status == TY_OK) {
        memset(address, 0, bytes);
        status = touch(txn, {word_at(rt, address), bytes / 8, 0, 0, bytes / 8, txn->ranges.stamp(), false, false});
    }
    if (status != TY_OK)
        static_cast<void>(heap_free(address)); // it was just allocated
    return status;
}

ty_status txn_free(ty_txn *txn, void *address) {
    touched_block *block;
    if (ty_status status = check_owner(txn, "free a block"))
        return status;
    if (ty_status status = touch_live(txn, "free", address, &block))
        return status;
    return free_touched(txn, block);
}

ty_status txn_resize_in_place(ty_txn *txn, void *address, size_t size) {
    touched_block *block;
    return resize_touched_in_place(txn, address, size, false, &block);
}

namespace {

void *resize_touched(ty_txn *txn, void *address, size_t size, bool scoped) {
    touched_block *block = nullptr;
    ty_status status = resize_touched_in_place(txn, address, size, scoped, &block);
    if (status == TY_OK)
        return address;
    if (status != TY_E_MEMORY || block == nullptr)
        return nullptr;
    void *moved = alloc_touched(txn, size, 0);
    if (moved == nullptr)
        return nullptr;
    block = find_touched(txn, word_at(*txn->rt, address)); // the array may have moved
    uint64_t kept_bytes = block->words_wanted * 8;
    memcpy(moved, address, size < kept_bytes ? size : kept_bytes);
    if (scoped)
        txn_note_scoped(txn, moved);
    return free_touched(txn, block) == TY_OK ? moved : nullptr;
}

} // namespace

void *txn_resize(ty_txn *txn, void *address, size_t size) {
    return resize_touched(txn, address, size, false);
}

void *txn_resize_scoped(ty_txn *txn, void *address, size_t size) {
    return resize_touched(txn, address, size, true);
}

void txn_note_scoped(ty_txn *txn, const void *block) {
    if (touched_block *touched = find_touched(txn, word_at(*txn->rt, block)))
        txn->scoped = touched->scoped = true;
}

const touched_block *scoped_block(const ty_txn *txn, uint64_t word) {
    const uint32_t number = txn->block_numbers.find(word);
    const touched_block *block = number != word_table::none ? txn->blocks.begin() + number : nullptr;
    return block != nullptr && block->scoped && block->own() && block->words_wanted != 0 ? block : nullptr;
}

void block_leave(ty_txn *txn, uint64_t word) {
    forget(txn, find_touched(txn, word));
}

ty_status txn_root_set(ty_txn *txn, const char *name, void *address) {
    if (ty_status status = check_owner(txn, "set a root"))
        return status;
    if (reinterpret_cast<uintptr_t>(address) % 8 != 0)
        return failure(TY_E_ARGUMENT, "set the root \"%s\" to %p in a transaction", name, address)
            .remedy("give an address that is a multiple of 8, as those of blocks are");
    touched_root *root = nullptr;
    for (touched_root &each : txn->roots)
        if (strcmp(each.name, name) == 0)
            root = &each;
    void *before = root != nullptr ? root->now : heap_root(txn->rt->heap, name);
    if (root == nullptr) {
        touched_root noted{{}, before, before, before};
        memcpy(noted.name, name, strnlen(name, sizeof noted.name - 1));
        if (ty_status status = txn->roots.push(noted))
            return status;
        root = txn->roots.end() - 1;
    }
    if (ty_status status = heap_root_set(txn->rt->heap, name, address))
        return status;
    root->now = address;
    return TY_OK;
}

ty_status txn_publish(ty_txn *txn, void *const *blocks, size_t count) {
    txn_runtime &rt = *txn->rt;
    if (ty_status status = check_owner(txn, "publish reserved blocks"))
        return status;
    if (ty_status status = reserved_take(rt, blocks, count))
        return status;
    ty_status status = TY_OK;
    size_t done = 0;
    for (; done < count; done++) {
        size_t bytes;
        bool is_extent;
        status = heap_block_at(rt.heap, "publish", blocks[done], &bytes, &is_extent);
        if (status == TY_OK)
            status = touch(txn, {word_at(rt, blocks[done]), bytes / 8, 0, 0, bytes / 8, 0, true, false});
        if (status != TY_OK)
            break;
    }
    if (status == TY_OK && txn->tracked)
        status = keep_published(txn, count);
    if (status == TY_OK)
        return TY_OK;
    for (size_t i = 0; i < count; i++) {
        if (i < done)
            forget(txn, find_touched(txn, word_at(rt, blocks[i])));
        static_cast<void>(reserved_put_back(rt, word_at(rt, blocks[i]), 0)); // nothing has grown
    }
    return status;
}

ty_status blocks_finish_commit(ty_txn *txn, bool by_snapshot) {
    txn_runtime &rt = *txn->rt;
    ty_status outcome = TY_OK;
    for (const touched_block &block : txn->blocks) {
        void *address = address_of(rt, block.word);
        ty_status status = TY_OK;
        bool listed = block.published || (by_snapshot && block.words_wanted == 0);
        if (listed) // before another thread can reserve its place
            reserved_forget(rt, block.word);
        if (block.words_wanted == 0 && txn->free_later && rt.threads && rt.sharing == nullptr &&
            reserved_leave(rt, block.word) == TY_OK)
            snapshots_free_later(rt, address);
        else if (block.words_wanted == 0)
            status = heap_free(address);
        else if (block.words_wanted < block.words)
            status = by_snapshot ? reserved_free(rt, address_of(rt, end_of(block)))
                                 : heap_resize_in_place(address, block.words_wanted * 8);
        if (status != TY_OK)
            outcome = status;
    }
    return outcome;
}

ty_status blocks_rollback(ty_txn *txn) {
    ty_status outcome = TY_OK;
    for (size_t i = txn->blocks.count; i > 0; i--)
        if (ty_status status = rollback_block(txn, txn->blocks.begin()[i - 1]))
            outcome = status;
    ty_status roots = fault("roots_kept_after_a_rollback") ? TY_OK : rollback_roots(txn);
    return outcome != TY_OK ? outcome : roots;
}

// X3: every snapshot lists the reserved blocks.
ty_status blocks_list(ty_txn *txn) {
    txn_runtime &rt = *txn->rt;
    for (size_t i = 0; i < txn->blocks.count; i++) {
        const touched_block &block = txn->blocks.begin()[i];
        ty_status status = TY_OK;
        if (block.published && block.words_wanted != 0)
            reserved_hide(rt, block.word);
        if (block.words_wanted == 0)
            status = block.published ? TY_OK : reserved_list(rt, block.word);
        else if (block.words_wanted < block.words)
            status = list_end(rt, block);
        if (status != TY_OK) {
            unlist(rt, txn->blocks.begin(), i);
            if (block.published && block.words_wanted != 0)
                reserved_show(rt, block.word);
            return status;
        }
    }
    return TY_OK;
}

// X6: a commit that fails leaves everything as it was.
void blocks_unlist(ty_txn *txn) {
    unlist(*txn->rt, txn->blocks.begin(), txn->blocks.count);
}

} // namespace taiyen
