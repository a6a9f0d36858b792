#include "moves.hpp"

#include <algorithm>
#include <bit>
#include <taiyen/detail/fault.hpp>

using namespace taiyen::pack;

namespace {

// A table by page is used for heaps in which it has at most so many entries per extent, or is small anyway.
constexpr uint64_t table_pages_an_extent = 4096;
constexpr uint64_t table_pages_min = uint64_t{1} << 20;
constexpr uint64_t span_pages_max = 16;

uint64_t pages_of(uint64_t bytes) {
    return (bytes + stream_page_bytes - 1) / stream_page_bytes;
}

} // namespace

ty_moves::ty_moves(layout &&old, char *base) : old_(std::move(old)), base_(base) {
    index_pages();
    end_page_ = old_.end_page();
}

ty_moves::ty_moves(layout &&old, char *base, const ty_size_class *classes, size_t class_count)
    : old_(std::move(old)), base_(base) {
    index_pages();
    count_ranks();
    plan(classes, class_count);
    place_rows();
    note_old_sizes();
}

void ty_moves::index_pages() {
    uint64_t end = old_.end_page();
    if (end > table_pages_min && end / table_pages_an_extent > old_.extents.size())
        return;
    pages_.resize(end);
    for (uint32_t i = 0; i < old_.extents.size(); i++)
        for (uint64_t page = 0; page < old_.extents[i].pages; page++)
            pages_[old_.extents[i].first_page + page] = i + 1;
}

void ty_moves::count_ranks() {
    ranks_.resize(old_.bits.size());
    for (const extent &a : old_.extents) {
        uint32_t before = 0;
        for (uint32_t word = 0; word < a.words(); word++) {
            ranks_[a.bits + word] = static_cast<uint16_t>(before);
            before += static_cast<uint32_t>(std::popcount(old_.bits[a.bits + word]));
        }
    }
}

uint64_t ty_moves::rank(const extent &a, uint64_t index) const {
    if (a.run)
        return 0;
    uint64_t below = (uint64_t{1} << (index % 64)) - 1;
    return ranks_[a.bits + index / 64] + static_cast<unsigned>(std::popcount(old_.bits[a.bits + index / 64] & below));
}

const extent *ty_moves::find(uint64_t offset) const {
    uint64_t page = offset / stream_page_bytes;
    if (!pages_.empty())
        return page < pages_.size() && pages_[page] != 0 ? &old_.extents[pages_[page] - 1] : nullptr;
    auto above = std::upper_bound(old_.extents.begin(), old_.extents.end(), page,
                                  [](uint64_t wanted, const extent &a) { return wanted < a.first_page; });
    return above != old_.extents.begin() && page - above[-1].first_page < above[-1].pages ? &above[-1] : nullptr;
}

void *ty_moves::moved(const void *old_address) const {
    uint64_t offset = reinterpret_cast<uint64_t>(old_address) - old_.base;
    const extent *a = find(offset);
    if (a == nullptr)
        return nullptr;
    uint64_t in_extent = offset - a->first_page * stream_page_bytes;
    uint64_t index = in_extent / a->block_bytes;
    if (index >= a->blocks || !old_.is_live(*a, index))
        return nullptr;
    return block(*a, index) + in_extent % a->block_bytes;
}

char *ty_moves::block(const extent &a, uint64_t index) const {
    if (places_.empty())
        return base_ + a.first_page * stream_page_bytes + index * a.block_bytes;
    const extent_place &to = places_[static_cast<size_t>(&a - old_.extents.data())];
    if (to.row == no_row)
        return base_ + to.first * stream_page_bytes;
    const row &r = rows_[to.row];
    uint64_t number = to.first + rank(a, index);
    uint64_t span = number / r.per_span;
    return base_ + (r.first_page + span * r.span_pages) * stream_page_bytes + number % r.per_span * r.block_bytes;
}

uint64_t ty_moves::new_block_bytes(const extent &a) const {
    if (places_.empty())
        return a.block_bytes;
    const extent_place &to = places_[static_cast<size_t>(&a - old_.extents.data())];
    return to.row == no_row ? a.block_bytes : rows_[to.row].block_bytes;
}

// The row of the smallest class that the blocks fit, or a row of one-block extents. A block that was an extent of its
// own begins at a page, and the program may have asked for that alignment: it moves to a class only if all blocks of
// the class begin at a page, too.
uint32_t ty_moves::row_for(uint64_t block_bytes, bool run, const ty_size_class *classes, size_t class_count) {
    const ty_size_class *fit = std::find_if(classes, classes + class_count,
                                            [&](const ty_size_class &one) { return one.block_bytes >= block_bytes; });
    row wanted{0, pages_of(block_bytes), 1, true, 0, 0};
    wanted.block_bytes = wanted.span_pages * stream_page_bytes;
    if (fit != classes + class_count &&
        (!run || fit->block_bytes == wanted.block_bytes ||
         (taiyen::detail::fault("run_loses_its_alignment_in_a_pack") && fit->block_bytes > wanted.block_bytes)))
        wanted = {fit->block_bytes,
                  fit->span_bytes / stream_page_bytes,
                  static_cast<uint32_t>(fit->span_bytes / fit->block_bytes),
                  false,
                  0,
                  0};
    for (uint32_t i = 0; i < rows_.size(); i++)
        if (rows_[i].block_bytes == wanted.block_bytes && rows_[i].run == wanted.run)
            return i;
    rows_.push_back(wanted);
    return static_cast<uint32_t>(rows_.size() - 1);
}

void ty_moves::add_to_row(uint64_t block_bytes, const sequence &of, const ty_size_class *classes, size_t class_count) {
    uint32_t number = row_for(block_bytes, old_.extents[of.extents.front()].run, classes, class_count);
    for (uint32_t i : of.extents) {
        places_[i] = {rows_[number].count, number};
        rows_[number].count += old_.extents[i].live;
    }
}

// One-block extents that fit no class of the new heap stay what they are, in their order.
void ty_moves::plan(const ty_size_class *classes, size_t class_count) {
    places_.assign(old_.extents.size(), {0, no_row});
    uint64_t small_max = class_count != 0 ? classes[class_count - 1].block_bytes : 0;
    for (const sequence &of : old_.content_order()) {
        if (of.block_bytes != 0) {
            add_to_row(of.block_bytes, of, classes, class_count);
            continue;
        }
        for (uint32_t i : of.extents)
            if (old_.extents[i].block_bytes <= small_max)
                add_to_row(old_.extents[i].block_bytes, {0, {i}, 1}, classes, class_count);
    }
}

// PK5: blocks keep their order, without gaps. The longest spans begin at the first multiple of their length, and
// shorter ones follow: so each starts at a multiple of its length. What fits before the longest ones goes there, from
// the end down for the same reason: so a small heap gets no longer.
void ty_moves::place_rows() {
    uint64_t longest = 1;
    for (const row &r : rows_)
        longest = r.run ? longest : std::max(longest, r.span_pages);
    uint64_t end = (first_block_page + longest - 1) / longest * longest, before = end;
    const auto place = [&](uint64_t pages) {
        if (before - first_block_page >= pages)
            return before -= pages;
        return (end += pages) - pages;
    };
    for (uint64_t pages = longest; pages != 0; pages /= 2)
        for (row &r : rows_)
            if (!r.run && r.span_pages == pages)
                r.first_page = place((r.count + (taiyen::detail::fault("packed_rows_overlap") ? 0 : r.per_span - 1)) /
                                     r.per_span * r.span_pages);
    for (row &r : rows_)
        if (r.run)
            r.first_page = place(r.count * r.span_pages);
    for (size_t i = 0; i < places_.size(); i++)
        if (places_[i].row == no_row)
            places_[i].first = place(old_.extents[i].pages);
    end_page_ = end;
}

void ty_moves::note_old_sizes() {
    bool differ = false;
    for (const extent &a : old_.extents) {
        old_sizes_.emplace_back(block(a, 0) - base_, a.block_bytes); // where its first live block is
        differ |= new_block_bytes(a) != a.block_bytes;
    }
    if (!differ)
        old_sizes_.clear();
    std::sort(old_sizes_.begin(), old_sizes_.end());
    auto same = [](const auto &one, const auto &next) { return one.second == next.second; };
    old_sizes_.erase(std::unique(old_sizes_.begin(), old_sizes_.end(), same), old_sizes_.end());
}

uint64_t ty_moves::old_block_bytes(const void *place, uint64_t place_bytes) const {
    const auto offset = static_cast<uint64_t>(static_cast<const char *>(place) - base_);
    auto after = std::upper_bound(old_sizes_.begin(), old_sizes_.end(), offset,
                                  [](uint64_t wanted, const auto &one) { return wanted < one.first; });
    return after == old_sizes_.begin() ? place_bytes : after[-1].second;
}

uint64_t ty_moves::used_bytes() const {
    return end_page_ * stream_page_bytes;
}

uint64_t ty_moves::moved_blocks() const {
    if (is_offset())
        return 0;
    uint64_t count = 0;
    for (const extent &a : old_.extents)
        for (uint64_t i = 0; i < a.blocks; i++)
            if (old_.is_live(a, i))
                count +=
                    static_cast<uint64_t>(block(a, i) - base_) != a.first_page * stream_page_bytes + i * a.block_bytes;
    return count;
}

std::vector<ty_extent> ty_moves::new_extents(std::vector<uint64_t> *bits) const {
    std::vector<ty_extent> made;
    auto add = [&](uint64_t page, uint64_t pages, uint64_t block_bytes, uint64_t fit, uint64_t live,
                   const uint64_t *words) {
        made.push_back({words != nullptr ? TY_EXTENT_SPAN : TY_EXTENT_BLOCK, base_ + page * stream_page_bytes,
                        pages * stream_page_bytes, block_bytes, fit, live, words});
    };
    if (places_.empty()) {
        for (const extent &a : old_.extents)
            add(a.first_page, a.pages, a.block_bytes, a.blocks, a.live, a.run ? nullptr : old_.bits.data() + a.bits);
        return made;
    }
    // In each row, all full spans share one bitmap; the last span, with the rest, has another.
    constexpr size_t words_of_span = span_pages_max * 8;
    bits->assign(rows_.size() * 2 * words_of_span, 0);
    auto set = [](uint64_t *words, uint64_t count) {
        for (uint64_t i = 0; i < count; i++)
            words[i / 64] |= uint64_t{1} << (i % 64);
    };
    for (size_t i = 0; i < rows_.size(); i++) {
        const row &r = rows_[i];
        uint64_t *full = bits->data() + i * 2 * words_of_span, *rest = full + words_of_span;
        set(full, r.per_span);
        set(rest, r.count % r.per_span);
        for (uint64_t done = 0, page = r.first_page; done < r.count; done += r.per_span, page += r.span_pages) {
            uint64_t live = std::min<uint64_t>(r.per_span, r.count - done);
            add(page, r.span_pages, r.block_bytes, r.per_span, live,
                r.run                ? nullptr
                : live == r.per_span ? full
                                     : rest);
        }
    }
    for (size_t i = 0; i < places_.size(); i++)
        if (places_[i].row == no_row)
            add(places_[i].first, old_.extents[i].pages, old_.extents[i].bytes(), 1, 1, nullptr);
    return made;
}
