#include "recycle.hpp"

#include "../pages/pages.hpp"
#include "relocate.hpp"

namespace taiyen {
namespace {

// Fewer contiguous pages are not moved: a call takes as long as one fault, and as seven while other threads run, since
// the kernel then sends their processors TLB shootdowns.
constexpr uint64_t stretch_min = 16;

// At most so many extents are examined for each missing page: that takes less time than its fault.
constexpr uint64_t extents_per_page = 4;
constexpr uint64_t extents_max = 4096;

// A huge page is not split for less: that takes 350 us and more, a fault 1.5 us.
constexpr uint64_t split_min = huge_page_pages / 2;

constexpr uint32_t moves_max = 64;
constexpr uint32_t failures_max = 4;

// Pages whose memory was moved from one place to the other.
struct page_move {
    uint32_t from;
    uint32_t to;
    uint32_t count;
};

// Iterates over stretches of an extent's pages with equal bits: of at least a unit, from 16 pages on, or of whole huge
// pages.
class stretches {
public:
    stretches(const ty_heap *heap, uint64_t first, uint64_t end, uint64_t unit, bool touched)
        : heap_(heap), at_(first), stop_(first), next_(first), end_(end), unit_(unit), touched_(touched) {}
    uint64_t at() const { return at_; }
    uint64_t left() const { return stop_ - at_; }
    void skip(uint64_t pages) { at_ += pages; }
    // False: there is no more.
    [[gnu::noinline]] bool find() {
        while (left() < unit_) {
            if (next_ == end_)
                return false;
            at_ = next_with_touched(heap_, next_, end_, touched_);
            next_ = stop_ = next_with_touched(heap_, at_, end_, !touched_);
            if (unit_ != huge_page_pages)
                continue;
            at_ = (at_ + huge_page_pages - 1) & ~(huge_page_pages - 1);
            stop_ &= ~(huge_page_pages - 1);
            stop_ = stop_ > at_ ? stop_ : at_;
        }
        return true;
    }

private:
    const ty_heap *heap_;
    uint64_t at_, stop_, next_, end_, unit_;
    bool touched_;
};

stretches stretches_of(const ty_heap *heap, page_extent extent, uint64_t unit, bool touched) {
    return {heap, extent.first, uint64_t{extent.first} + extent.count, unit, touched};
}

// Pages of the extent from here on were never used.
uint64_t used_end(page_extent extent, uint64_t fresh_from) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    return fresh_from < extent.first ? extent.first : end < fresh_from ? end : fresh_from;
}

// The next extent in the sweep for donors, if it can be one.
bool next_donor(ty_heap *heap, page_extent *extent) {
    page_memory &memory = heap->memory;
    uint64_t top = top_of(heap);
    uint64_t page = next_head(heap, memory.next_donor < first_user_page ? first_user_page : memory.next_donor, top);
    if (page >= top || !extent_at_head(heap, page, extent)) {
        memory.next_donor = page < top ? page + 1 : first_user_page; // the tables are damaged: verify reports it
        return false;
    }
    memory.next_donor = page + extent->count;
    return kind_at(heap, page) == page_free && extent->count >= stretch_min;
}

// Moves memory from the donors into the holes, in pieces of at least a unit, and records it. P1: a page with a clear
// bit has no memory. Where small pages have been, an empty page table is left, and the kernel would split a huge page
// that is moved there: so the table is dropped first.
[[gnu::cold, gnu::noinline]] void move_memory(ty_heap *heap, stretches holes, const memory_donors &donors,
                                              uint64_t unit) {
    page_move moves[moves_max];
    uint32_t count = 0;
    uint32_t failures = 0;
    if (unit != huge_page_pages)
        heap->memory.parts_move.store(true, std::memory_order_relaxed);
    for (uint32_t i = 0; i < donors.count; i++) {
        stretches given = stretches_of(heap, donors.extents[i], unit, true);
        while (count < moves_max && failures < failures_max && holes.find() && given.find()) {
            uint64_t wanted = holes.left() < given.left() ? holes.left() : given.left();
            char *to = page_address(heap, holes.at());
            if (unit == huge_page_pages) {
                forget_small_pages(heap, holes.at(), wanted);
                heap->owner.give_back(heap->owner.context, to, wanted * page_bytes);
            } else {
                split_at_ends(heap, {static_cast<uint32_t>(given.at()), static_cast<uint32_t>(wanted)});
                note_small_pages(heap, holes.at(), wanted);
            }
            uint64_t moved =
                heap->mover.hand_over(page_address(heap, given.at()), to, wanted * page_bytes) / page_bytes;
            if (moved != 0)
                moves[count++] = {static_cast<uint32_t>(given.at()), static_cast<uint32_t>(holes.at()),
                                  static_cast<uint32_t>(moved)};
            failures += moved < wanted;
            given.skip(wanted);
            holes.skip(wanted);
        }
    }
    os::lock_guard guard(heap->pages_lock);
    for (uint32_t i = 0; i < count; i++) {
        mark_touched(heap, moves[i].from, moves[i].count, false);
        mark_touched(heap, moves[i].to, moves[i].count, true);
    }
}

// In an extent of so many pages it is not worth splitting a huge page to move a part: all that moves later would be
// split, too.
bool takes_huge_only(page_extent extent) {
    return extent.count >= aligned_extent_pages;
}

// The pages that an extent needs: all below fresh_from that have no memory, and whole huge pages. If the heap has huge
// ones and may hold more memory, only those: faults for the rest cost less than splitting huge pages that others could
// use whole.
struct memory_wish {
    uint64_t pages;
    bool huge_only;
};

memory_wish wish_of(const ty_heap *heap, page_extent extent, uint64_t fresh_from, uint64_t holes_end) {
    uint64_t old = used_end(extent, fresh_from) - extent.first;
    uint64_t missing = old - count_touched(heap, extent.first, old);
    bool huge_only =
        takes_huge_only(extent) || (heap->huge_places.load(std::memory_order_relaxed) != 0 && may_hold_more(heap));
    if (missing >= stretch_min && !huge_only)
        return {missing, false};
    uint64_t pages = 0;
    stretches holes(heap, extent.first, holes_end, huge_page_pages, false);
    for (; holes.find(); holes.skip(holes.left()))
        pages += holes.left();
    return {pages, true};
}

// The free extent after a long one, if it holds the rest of its last huge page, and none of that has memory: then that
// page becomes a whole one, too. Count 0: it does not.
page_extent free_after(const ty_heap *heap, page_extent extent) {
    uint64_t end = uint64_t{extent.first} + extent.count;
    uint64_t tail = end & ~(huge_page_pages - 1);
    uint64_t tail_end = tail + huge_page_pages;
    page_extent after;
    bool whole = takes_huge_only(extent) && tail != end && tail_end <= top_of(heap) && is_head(heap, end) &&
                 kind_at(heap, end) == page_free && extent_at_head(heap, end, &after) &&
                 after.count >= tail_end - end && next_with_touched(heap, tail, tail_end, true) == tail_end;
    return whole ? after : page_extent{};
}

// Whole huge pages go to extents that need them whole, or at least half of one: faults cost less than a split.
bool can_give(const ty_heap *heap, page_extent extent, const memory_wish &wish) {
    bool huge = stretches_of(heap, extent, huge_page_pages, true).find();
    return huge ? wish.huge_only || wish.pages >= split_min : !wish.huge_only;
}

// Code around system calls is cold, here and elsewhere: so it is compiled for size.
[[gnu::cold, gnu::noinline]] bool withdraw(ty_heap *heap, page_extent donor, memory_donors *donors) {
    if (!withdraw_free(heap, donor))
        return false;
    heap->memory.idle -= count_touched(heap, donor.first, donor.count);
    donors->extents[donors->count++] = donor;
    return true;
}

} // namespace

[[gnu::cold]] void withdraw_donors(ty_heap *heap, page_extent extent, uint64_t fresh_from, memory_donors *donors) {
    page_memory &memory = heap->memory;
    donors->count = 0;
    donors->holes_end = uint64_t{extent.first} + extent.count;
    if (!heap->owner.movable || extent.count < stretch_min || memory.idle < stretch_min)
        return;
    if (!memory.zeros.load(std::memory_order_relaxed) || heap->mover.refuses())
        return;
    page_extent after = free_after(heap, extent);
    uint64_t holes_end =
        after.count != 0 ? (after.first + huge_page_pages) & ~(huge_page_pages - 1) : donors->holes_end;
    memory_wish wish = wish_of(heap, extent, fresh_from, holes_end);
    donors->huge_only = wish.huge_only;
    if (wish.pages != 0 && after.count != 0 && withdraw(heap, after, donors))
        donors->holes_end = holes_end;
    uint64_t extents = wish.pages < extents_max / extents_per_page ? wish.pages * extents_per_page : extents_max;
    for (uint64_t found = 0; extents > 0 && found < wish.pages && donors->count < donors_max; extents--) {
        page_extent donor;
        if (!next_donor(heap, &donor) || !can_give(heap, donor, wish))
            continue;
        uint64_t touched = count_touched(heap, donor.first, donor.count);
        if (touched >= stretch_min && withdraw(heap, donor, donors))
            found += touched;
    }
}

// Whole huge pages that get no memory from donors are faulted in, in 90 us each; where an empty page table is left, as
// 512 small pages, in 600 us. So the table is dropped first.
[[gnu::cold, gnu::noinline]] void drop_page_tables(ty_heap *heap, page_extent extent, uint64_t fresh_from) {
    stretches holes(heap, extent.first, used_end(extent, fresh_from), huge_page_pages, false);
    for (; holes.find(); holes.skip(holes.left()))
        if (forget_small_pages(heap, holes.at(), holes.left()))
            heap->owner.give_back(heap->owner.context, page_address(heap, holes.at()), holes.left() * page_bytes);
}

[[gnu::cold]] void recycle(ty_heap *heap, page_extent extent, uint64_t fresh_from, const memory_donors &donors) {
    if (donors.count != 0)
        move_memory(heap, {heap, extent.first, donors.holes_end, huge_page_pages, false}, donors, huge_page_pages);
    if (extent.count >= huge_page_pages && heap->memory.touched != nullptr)
        drop_page_tables(heap, extent, fresh_from);
    if (donors.count == 0)
        return;
    if (!donors.huge_only)
        move_memory(heap, {heap, extent.first, used_end(extent, fresh_from), stretch_min, false}, donors, stretch_min);
    os::lock_guard guard(heap->pages_lock);
    for (uint32_t i = 0; i < donors.count; i++) {
        heap->memory.idle += count_touched(heap, donors.extents[i].first, donors.extents[i].count);
        return_withdrawn(heap, donors.extents[i]);
    }
}

} // namespace taiyen
