// Unreachable blocks of a heap.
#include "code.hpp"
#include "src/undo/undo.hpp"

namespace taiyen {
namespace {

// M9: a block is unreachable if no root leads to it. A word that is an address within a live block counts as a pointer
//     to it, whatever else it may be.
class marking {
public:
    explicit marking(ty_heap *heap) : heap_(heap) {}

    ty_status begin() {
        if (ty_status status = each(heap_each_block))
            return status;
        uint8_t *states = nullptr;
        if (ty_status status = states_.extend(blocks_.count(), &states))
            return status;
        std::fill_n(states, blocks_.count(), unreachable);
        return each(each_internal_block); // these point to nothing: undo's hold old bytes
    }
    ty_status mark() {
        if (ty_status status = reach(heap_service_root(heap_)))
            return status;
        ty_status status = heap_each_root(heap_, reach_root, this);
        if (status || failed_)
            return status ? status : failed_;
        while (!status && pending_.count()) {
            const ty_block block = pending_.pop();
            auto *const *word = static_cast<void *const *>(block.address);
            for (void *const *end = word + block.size_bytes / sizeof *word; word < end && !status; ++word)
                status = reach(*word);
        }
        return status;
    }
    // Moves the unreachable blocks to the front.
    const ty_block *left(size_t *count) {
        *count = 0;
        for (size_t n = 0; n < blocks_.count(); n++)
            if (states_[n] == unreachable)
                blocks_[(*count)++] = blocks_[n];
        return blocks_.begin();
    }

private:
    enum state : uint8_t { unreachable, reached, own };

    ty_status each(ty_status (*of_heap)(ty_heap *, ty_block_callback *, void *)) {
        const ty_status status = of_heap(heap_, take_block, this);
        return status ? status : failed_;
    }
    static bool take_block(const ty_block *block, void *context) {
        auto &self = *static_cast<marking *>(context);
        if (self.states_.count()) { // the library's own
            const size_t n = self.find(block->address);
            if (n < self.blocks_.count())
                self.states_[n] = own;
            return true;
        }
        self.failed_ = self.blocks_.push(*block);
        return !self.failed_;
    }
    static bool reach_root(const char *, void *address, void *context) {
        auto &self = *static_cast<marking *>(context);
        self.failed_ = self.reach(address);
        return !self.failed_;
    }
    // The block that an address lies in, or the number of blocks.
    size_t find(const void *address) const {
        const auto at = reinterpret_cast<uintptr_t>(address);
        const ty_block *after =
            std::upper_bound(blocks_.begin(), blocks_.end(), at,
                             [](uintptr_t a, const ty_block &b) { return a < reinterpret_cast<uintptr_t>(b.address); });
        if (after == blocks_.begin())
            return blocks_.count();
        const ty_block &block = after[-1];
        return at - reinterpret_cast<uintptr_t>(block.address) < block.size_bytes
                   ? static_cast<size_t>(after - 1 - blocks_.begin())
                   : blocks_.count();
    }
    ty_status reach(const void *address) {
        const size_t n = find(address);
        if (n == blocks_.count() || states_[n] != unreachable)
            return TY_OK;
        states_[n] = reached;
        return pending_.push(blocks_[n]);
    }

    ty_heap *heap_;
    os::array<ty_block> blocks_; // in order of address
    os::array<uint8_t> states_;
    os::array<ty_block> pending_;
    ty_status failed_ = TY_OK;
};

} // namespace

ty_status each_unreachable(ty_heap *heap, ty_site_callback *callback, void *context) {
    marking marks(heap);
    size_t count = 0;
    if (ty_status status = marks.begin())
        return status;
    if (ty_status status = marks.mark())
        return status;
    const ty_block *left = marks.left(&count);
    return heap_report_sites(left, count, "are reached from no root", callback, context);
}

} // namespace taiyen
