#include "code_words.hpp"

#include "../undo/undo.hpp"

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
        for (const uint64_t *end = word + block.size_bytes / sizeof *word; word < end && !status; ++word)
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
    // Whether a block has a word that leads to where a variable lies, as who keeps an end keeps a begin: the last
    // answer.
    const void *block;
    uint64_t begin, end;
    bool answer;

    bool has_begin(const ty_block &of, uint64_t from, uint64_t to) {
        if (block == of.address && begin == from && end == to)
            return answer;
        const auto *word = static_cast<const uint64_t *>(of.address);
        const uint64_t *last = word + of.size_bytes / sizeof *word;
        answer = std::any_of(word, last, [&](uint64_t one) { return one >= from && one < to; });
        block = of.address;
        begin = from;
        end = to;
        return answer;
    }
    code_word look_up(uint64_t word, const ty_block &of) {
        code_word what = words.look_up(word);
        if (what.what == code_word::leads_on && what.doubt_begin && !believes_begins &&
            has_begin(of, what.doubt_begin, word))
            what.what = code_word::lost;
        return what;
    }
};

// CD7.
ty_status note_word(void *context, uint64_t *word, const ty_block &block) {
    auto &all = *static_cast<finding *>(context);
    auto &found = all.found;
    const bool known = all.known.has(word);
    const code_word what = known ? code_word{} : all.look_up(*word, block);
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
    }
    return !lost && all.words.is_here(*word) ? found.numbers.push({all.known.offset_of(word), *word}) : TY_OK;
}

struct numbers_search {
    const list<address_range> &objects;
    list<code_number_1> &numbers;
    known_numbers places;
};

ty_status note_number(void *context, uint64_t *word, const ty_block &) {
    auto &all = *static_cast<numbers_search *>(context);
    for (const address_range &one : all.objects)
        if (*word >= one.begin && *word < one.end)
            return all.numbers.push({all.places.offset_of(word), *word});
    return TY_OK;
}

struct history_search {
    const list<object_fate> &fates;
    history_words &found;
};

bool look_at_history(uint64_t least, uint64_t most, void *context) {
    auto &all = *static_cast<history_search *>(context);
    for (const object_fate &one : all.fates)
        if (one.what != fate::same && most >= one.before->begin && least < one.before->end) {
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

// CD3.
ty_status find_words(ty_heap *heap, const code_record &own, translator &words, bool believes_begins,
                     words_found *found) {
    finding all{words, *found, {heap, own}, believes_begins, nullptr, 0, 0, false};
    return each_word(heap, own, words.range(), note_word, &all);
}

ty_status find_numbers(ty_heap *heap, const code_record &own, const list<address_range> &objects,
                       list<code_number_1> *numbers) {
    address_range all{UINT64_MAX, 0};
    for (const address_range &one : objects)
        all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
    numbers_search search{objects, *numbers, {heap, own}};
    return all.begin < all.end ? each_word(heap, own, all, note_number, &search) : TY_OK;
}

ty_status find_in_history(ty_heap *heap, const list<object_fate> &fates, history_words *found) {
    history_search search{fates, *found};
    return undo_each_recorded_word(heap, look_at_history, &search);
}

} // namespace taiyen
