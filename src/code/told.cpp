// Words that lead into code, told to a person or a program.
#include "code.hpp"

namespace taiyen {
namespace {

constexpr uint64_t low_end = uint64_t{1} << 32; // numbers look like addresses below

struct named_range {
    const char *name;
    address_range range;
};

struct telling {
    list<named_range> ranges;
    ty_code_word_callback *callback;
    void *context;
    bool stopped;
    known_numbers numbers;
};

ty_status add_range(telling &all, const char *name, uint64_t begin, uint64_t end) {
    return begin < end && begin >= low_end ? all.ranges.push({name, {begin, end}}) : TY_OK;
}

ty_status collect_ranges(ty_heap *heap, const code_record &record, telling &all) {
    if (!record.head) {
        const code_zones_2 before = image_code_before(heap);
        if (ty_status status = add_range(all, "the program", before.program_begin, before.program_end))
            return status;
        return add_range(all, "its libraries", before.libraries_begin, before.libraries_end);
    }
    for (uint64_t n = 0; n < record.count; ++n)
        if (ty_status status = add_range(all, record.objects[n].name, record.objects[n].begin, record.objects[n].end))
            return status;
    return TY_OK;
}

ty_status tell_word(void *context, uint64_t *word, const ty_block &block) {
    auto &all = *static_cast<telling *>(context);
    if (all.numbers.has(word))
        return TY_OK;
    for (const named_range &one : all.ranges)
        if (!all.stopped && *word >= one.range.begin && *word < one.range.end) {
            const ty_code_word told{
                sizeof told, word, *word, block.address, block.size_bytes, one.name, *word - one.range.begin};
            all.stopped = !all.callback(&told, all.context);
            break;
        }
    return TY_OK;
}

} // namespace

ty_status each_code_word(ty_heap *heap, ty_code_word_callback *callback, void *context) {
    code_record record;
    if (ty_status status = record_find(heap, &record))
        return status;
    telling all{{}, callback, context, false, {heap, record}};
    if (ty_status status = collect_ranges(heap, record, all))
        return status;
    address_range range{UINT64_MAX, 0};
    for (const named_range &one : all.ranges)
        range = {std::min(range.begin, one.range.begin), std::max(range.end, one.range.end)};
    return range.begin < range.end ? each_word(heap, record, range, tell_word, &all) : TY_OK;
}

} // namespace taiyen
