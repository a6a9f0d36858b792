// Which blocks of a heap are this layer's own: from the runtime state of an open heap, or else from the heap's content.
#include "members.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr size_t first_bytes = size_t{64} << 10;

// NULL: the heap is not concurrent, or was never used so.
concurrent_heap *known_concurrent(ty_heap *heap, const txn_runtime *rt) {
    if (rt != nullptr)
        return static_cast<concurrent_heap *>(rt->concurrent);
    return heap_may_be_concurrent(heap) ? static_cast<concurrent_heap *>(heap_service_of(heap)) : nullptr;
}

// X22: blocks that commits have freed stay while transactions may read them.
ty_status add_deferred(concurrent_heap &all, internal_blocks &found) {
    os::lock_guard guard(all.deferred.lock);
    return all.deferred.each_word([&](uint64_t word) { return found.add(word * 8); });
}

} // namespace

ty_status internal_blocks::create(ty_heap *heap) {
    heap_ = heap;
    return memory_.create_claimed(heap_limit(heap)); // a word for each of the smallest blocks
}

ty_status internal_blocks::add(uint64_t offset) {
    const size_t bytes = (count_ + 1) * sizeof(uint64_t);
    if (bytes > memory_.provided()) {
        const size_t wanted = std::min(std::max(first_bytes, 2 * memory_.provided()), memory_.most());
        if (ty_status status = memory_.provide(std::max(bytes, wanted)))
            return status;
    }
    begin()[count_++] = offset;
    return TY_OK;
}

void internal_blocks::each(ty_block_callback *callback, void *context) {
    uint64_t *end = begin() + count_;
    std::sort(begin(), end);
    end = std::unique(begin(), end);
    for (const uint64_t *offset = begin(); offset != end; ++offset) {
        void *address = static_cast<char *>(heap_base(heap_)) + *offset;
        ty_block block;
        if (heap_find_block(heap_, address, &block) && block.address == address && !callback(&block, context))
            return;
    }
}

ty_status txn_add_internal_blocks(ty_heap *heap, internal_blocks &found) {
    const txn_runtime *rt = runtime_of(heap);
    concurrent_heap *all = known_concurrent(heap, rt);
    if ((rt != nullptr && rt->txn_forked()) || (all != nullptr && all->fork.forked()))
        return failure(TY_E_FORKED, "read the library's blocks of a heap of the parent process").remedy("do it there");
    ty_status status = rt != nullptr ? reservations_add_blocks(*rt, found) : reservations_read_blocks(heap, found);
    return status == TY_OK && all != nullptr ? add_deferred(*all, found) : status;
}

} // namespace taiyen
