#include "code_words.hpp"

#include "src/undo/undo.hpp"

namespace taiyen {
namespace {

struct walking {
    const code_record &own;
    const void *service;
    address_range range;
    word_visit *visit;
    void *context;
    ty_status status;

    bool look(const ty_block &block) {
        if (own.owns(block.address) || block.address == service)
            return true;
        auto *word = static_cast<uint64_t *>(block.address);
        const size_t words = block.size_bytes / sizeof *word / (fault("half_of_a_block_searched_for_code") ? 2 : 1);
        for (const uint64_t *end = word + words; word < end && !status; ++word)
            if (*word - range.begin < range.end - range.begin)
                status = visit(context, word, block);
        return !status;
    }
};

bool look_at_block(const ty_block *block, void *context) {
    return static_cast<walking *>(context)->look(*block);
}

struct finding {
    translator &words;
    words_found &found;
    known_numbers known;
    bool believes_begins;

    // Code that stores an array's end usually stores its begin, or a position within it, nearby.
    static bool has_begin(const uint64_t *word, const ty_block &of, uint64_t from) {
        constexpr ptrdiff_t near_by = 4; // words
        const auto *first = static_cast<const uint64_t *>(of.address);
        const uint64_t *begin = word - std::min(near_by, word - first);
        const uint64_t *end = word + std::min<ptrdiff_t>(near_by + 1, first + of.size_bytes / sizeof *word - word);
        return std::any_of(begin, end, [&](uint64_t one) { return one >= from && one < *word; });
    }
    code_word look_up(const uint64_t *word, const ty_block &of, bool *doubtful) {
        code_word what = words.look_up(*word);
        if (what.what != code_word::leads_on || !what.array)
            return what;
        const bool ends = has_begin(word, of, what.array);
        if (what.is_end && !ends)
            what.what = code_word::unnamed;
        *doubtful = !what.is_end && ends && !believes_begins;
        if (*doubtful)
            what.what = code_word::lost;
        return what;
    }
};

// CD7: words that stood in the heap before are not taken for this process's addresses.
ty_status note_word(void *context, uint64_t *word, const ty_block &block) {
    auto &all = *static_cast<finding *>(context);
    auto &found = all.found;
    const bool known = all.known.has(word) && !fault("number_repointed_as_an_address");
    bool doubtful = false;
    const code_word what = known ? code_word{} : all.look_up(word, block, &doubtful);
    if (known || what.what == code_word::elsewhere)
        return all.words.is_here(*word) ? found.numbers.push({all.known.offset_of(word), *word}) : TY_OK;
    if (what.what == code_word::leads_on)
        return found.repoint.push({word, what.value});
    const bool lost = what.what == code_word::lost;
    if (!lost && what.what != code_word::unnamed)
        return TY_OK;
    const bool first = found.lost == 0 && (lost || found.unnamed == 0);
    ++(lost ? found.lost : found.unnamed);
    if (first) {
        found.lost_word = *word;
        found.lost_object = what.object;
        found.lost_block = block;
        found.doubtful = doubtful;
    }
    return !lost && all.words.is_here(*word) ? found.numbers.push({all.known.offset_of(word), *word}) : TY_OK;
}

struct numbers_search {
    const os::array<address_range> &objects;
    os::array<code_number> &numbers;
    known_numbers places;
};

ty_status note_number(void *context, uint64_t *word, const ty_block &) {
    auto &all = *static_cast<numbers_search *>(context);
    for (const address_range &one : all.objects)
        if (*word >= one.begin && *word <= one.end)
            return all.numbers.push({all.places.offset_of(word), *word});
    return TY_OK;
}

struct history_search {
    const os::array<object_match> &matches;
    const translator &words;
    history_words &found;
};

// Whether a word of which some bytes are known may point into a range. Addresses of one range have at most two upper
// halves; unknown bytes of the lower half may be anything.
bool may_lead(uint64_t value, uint64_t known, uint64_t begin, uint64_t end) {
    constexpr uint64_t upper = 0xffffffff00000000;
    for (uint64_t half : {begin & upper, end & upper})
        if (((half ^ value) & known & upper) == 0) {
            const uint64_t low = value & known & ~upper, least = half | low, most = least | (~known & ~upper);
            if (most >= begin && least <= end)
                return true;
        }
    return false;
}

// Whether a word with these known bytes must not be put back any more, if it points into the object.
bool is_overwritten_in_part(const object_match &object, const translator &words, uint64_t value, uint64_t known) {
    if (object.what != match_kind::same)
        return true;
    // From parts of a word it is unknown which variable it points to.
    return known == UINT64_MAX ? words.is_replaced(value, object) : words.may_be_replaced();
}

// The upper half of a word is final when this entry alone is put back; bytes of the lower half that it does not have
// may be put back by other entries.
bool look_at_history(uint64_t value, uint64_t known, void *context) {
    constexpr uint64_t upper = 0xffffffff00000000;
    auto &all = *static_cast<history_search *>(context);
    known |= upper; // value has them
    for (const object_match &one : all.matches)
        if (may_lead(value, known, one.before->begin, one.before->end) &&
            is_overwritten_in_part(one, all.words, value, known)) {
            all.found.object = all.found.count++ ? all.found.object : &one;
            break;
        }
    return true;
}

} // namespace

ty_status each_word(ty_heap *heap, const code_record &own, address_range range, word_visit *visit, void *context) {
    walking walk{own, heap_service_root(heap), range, visit, context, TY_OK};
    const ty_status status = heap_each_block(heap, look_at_block, &walk);
    return walk.status ? walk.status : status;
}

// CD3: each word that must be repointed is found once.
ty_status find_words(ty_heap *heap, const code_record &own, translator &words, bool believes_begins,
                     words_found *found) {
    finding all{words, *found, {heap, own}, believes_begins};
    return each_word(heap, own, words.range(), note_word, &all);
}

ty_status find_numbers(ty_heap *heap, const code_record &own, const os::array<address_range> &objects,
                       os::array<code_number> *numbers) {
    address_range all{UINT64_MAX, 0};
    for (const address_range &one : objects)
        all = {std::min(all.begin, one.begin), std::max(all.end, one.end + 1)};
    numbers_search search{objects, *numbers, {heap, own}};
    return all.begin < all.end ? each_word(heap, own, all, note_number, &search) : TY_OK;
}

ty_status find_in_history(ty_heap *heap, const os::array<object_match> &matches, const translator &words,
                          history_words *found) {
    history_search search{matches, words, *found};
    return undo_each_recorded_word(heap, look_at_history, &search);
}

} // namespace taiyen
