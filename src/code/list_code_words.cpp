// Words that point into code, listed for a person or a program.
#include "code.hpp"

namespace taiyen {
namespace {

struct named_range {
    const char *name;
    address_range range;
};

// The ranges of code that words may point into. Without a record these are many ranges, but in only two regions.
class code_ranges {
public:
    ty_status add(const char *name, uint64_t begin, uint64_t end, size_t region = 0) {
        if (begin >= end || begin < low_end)
            return TY_OK;
        address_range &hull = hulls_[region];
        hull = {std::min(hull.begin, begin), std::max(hull.end, end)};
        return all_.push({name, {begin, end}});
    }
    ty_status collect(ty_heap *heap, const code_record &record) {
        if (!record.head)
            return collect_before(image_code_before(heap));
        for (uint64_t n = 0; n < record.count; ++n)
            if (ty_status status = add(record.objects[n].name, record.objects[n].begin, record.objects[n].end))
                return status;
        return TY_OK;
    }
    address_range range() const {
        return {std::min(hulls_[0].begin, hulls_[1].begin), std::max(hulls_[0].end, hulls_[1].end)};
    }
    // NULL: it points into none.
    const named_range *find(uint64_t word) const {
        if (std::none_of(std::begin(hulls_), std::end(hulls_), [word](const auto &hull) { return has(hull, word); }))
            return nullptr;
        const named_range *found =
            std::find_if(all_.begin(), all_.end(), [word](const named_range &one) { return has(one.range, word); });
        return found != all_.end() ? found : nullptr;
    }

private:
    static bool has(const address_range &range, uint64_t word) { return word >= range.begin && word < range.end; }
    ty_status collect_before(const code_places &before) {
        for (uint64_t n = before.count; n-- > 0;) { // the newest first
            const os::code_zones &zones = before.zones[n];
            if (ty_status status = add("the program", zones.program_begin, zones.program_end, 0))
                return status;
            if (ty_status status = add("its libraries", zones.libraries_begin, zones.libraries_end, 1))
                return status;
        }
        return TY_OK;
    }

    os::array<named_range> all_;
    address_range hulls_[2] = {{UINT64_MAX, 0}, {UINT64_MAX, 0}};
};

struct code_word_list {
    code_ranges ranges;
    ty_code_word_callback *callback;
    void *context;
    bool stopped;
    known_numbers numbers;
};

ty_status report_word(void *context, uint64_t *word, const ty_block &block) {
    auto &all = *static_cast<code_word_list *>(context);
    if (all.stopped || all.numbers.has(word))
        return TY_OK;
    if (const named_range *one = all.ranges.find(*word)) {
        const ty_code_word found{
            sizeof found, word, *word, block.address, block.size_bytes, one->name, *word - one->range.begin};
        all.stopped = !all.callback(&found, all.context);
    }
    return TY_OK;
}

// CD9: blocks reached from the roots, the nearest first.
class sample {
public:
    sample(ty_heap *heap, const code_ranges &ranges) : heap_(heap), ranges_(ranges) {}
    ty_status count(uint64_t *words) {
        const void **seen;
        if (ty_status status = blocks_.reserve(blocks_max))
            return status;
        if (ty_status status = seen_.extend(places, &seen))
            return status;
        auto add_root = [](const char *, void *address, void *self) {
            static_cast<sample *>(self)->add(address);
            return true;
        };
        if (ty_status status = heap_each_root(heap_, add_root, this))
            return status;
        for (size_t n = 0; n < blocks_.count(); ++n) {
            const auto *word = static_cast<const uint64_t *>(blocks_[n].address);
            const auto *end = word + std::min(blocks_[n].size_bytes, block_bytes_max) / sizeof *word;
            for (; word < end; ++word) {
                *words += ranges_.find(*word) != nullptr;
                add(reinterpret_cast<const void *>(*word));
            }
        }
        return TY_OK;
    }

private:
    static constexpr size_t blocks_max = 256, block_bytes_max = 4096, places = 4 * blocks_max;

    void add(const void *address) {
        ty_block block;
        if (blocks_.count() == blocks_max || heap_of(address) != heap_ || !heap_find_block(heap_, address, &block))
            return;
        auto at = reinterpret_cast<uintptr_t>(block.address) / 16 % places;
        for (; seen_[at] != nullptr; at = (at + 1) % places)
            if (seen_[at] == block.address)
                return;
        seen_[at] = block.address;
        static_cast<void>(blocks_.push(block)); // there is room
    }

    ty_heap *heap_;
    const code_ranges &ranges_;
    os::array<ty_block> blocks_;
    os::array<const void *> seen_; // by address
};

} // namespace

ty_status each_code_word(ty_heap *heap, ty_code_word_callback *callback, void *context) {
    code_record record;
    if (ty_status status = record_find(heap, &record))
        return status;
    code_word_list all{{}, callback, context, false, {heap, record}};
    if (ty_status status = all.ranges.collect(heap, record))
        return status;
    const address_range range = all.ranges.range();
    return range.begin < range.end ? each_word(heap, record, range, report_word, &all) : TY_OK;
}

ty_status count_near_code_words(ty_heap *heap, uint64_t *words) {
    code_ranges ranges;
    *words = 0;
    if (ty_status status = ranges.collect(heap, code_record{}))
        return status;
    return ranges.range().begin < ranges.range().end ? sample(heap, ranges).count(words) : TY_OK;
}

} // namespace taiyen
