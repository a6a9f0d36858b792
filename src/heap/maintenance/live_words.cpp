// Searches live blocks for words that lead to given addresses.
#include "../blocks/blocks.hpp"
#include "walk.hpp"

#include <algorithm>

namespace taiyen {
namespace {

// Adjacent extents are read in one piece, including free blocks of their spans: whether a word is in a live block is
// checked only for those that lead to the wanted addresses.
class live_words {
public:
    live_words(ty_heap *heap, const os::malloc_word_search &wanted, size_t *left)
        : heap_(heap), wanted_(wanted), words_(wanted.begin, wanted.end, look_at_word, this), left_(left) {}
    live_words(const live_words &) = delete;
    live_words &operator=(const live_words &) = delete;

    bool look() {
        extent_walk walk(heap_);
        page_extent stretch{0, 0}, extent;
        while (walk.next(&extent)) {
            const bool used =
                kind_at(heap_, extent.first) == page_span || kind_at(heap_, extent.first) == page_extent_head;
            if (used && stretch.first + stretch.count == extent.first) {
                stretch.count += extent.count;
                continue;
            }
            look_at(stretch);
            stretch = used ? extent : page_extent{0, 0};
        }
        look_at(stretch);
        return whole_ && !walk.damaged();
    }

private:
    void look_at(page_extent stretch) {
        const size_t all = stretch.count * page_bytes, bytes = std::min(all, *left_) & ~(sizeof(uint64_t) - 1);
        if (all == 0)
            return;
        *left_ -= bytes;
        whole_ = words_.look(reinterpret_cast<uintptr_t>(page_address(heap_, stretch.first)), bytes) && bytes == all &&
                 whole_;
    }
    static void look_at_word(void *context, uintptr_t address, uint64_t value) {
        const auto &self = *static_cast<live_words *>(context);
        const auto *word = reinterpret_cast<const void *>(address);
        live_block found;
        if (!self.wanted_.wants(self.wanted_.context, value) || find_block(self.heap_, word, &found) != TY_OK)
            return;
        ty_block block{self.heap_->base + found.offset, found.bytes};
        if (self.heap_->checks != nullptr && !self.heap_->checks->calls->as_program_sees(self.heap_, &block))
            return; // freed, and in quarantine
        self.wanted_.visit(self.wanted_.context, {word, value, block.address, block.size_bytes});
    }

    ty_heap *heap_;
    const os::malloc_word_search &wanted_;
    os::word_search words_;
    size_t *left_;
    bool whole_ = true;
};

} // namespace

bool heap_each_word(ty_heap *heap, const os::malloc_word_search &wanted, size_t *left) {
    callback_pause paused(heap);
    return live_words(heap, wanted, left).look();
}

} // namespace taiyen
