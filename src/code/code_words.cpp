#include "code_words.hpp"

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
};

// CD7.
ty_status note_word(void *context, uint64_t *word, const ty_block &block) {
    auto &all = *static_cast<finding *>(context);
    auto &found = all.found;
    const code_word what = all.words.look_up(*word);
    if (all.known.has(word) || what.what == code_word::elsewhere)
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

} // namespace

ty_status each_word(ty_heap *heap, const code_record &own, address_range range, word_visit *visit, void *context) {
    walking walk{own, heap_service_root(heap), range, visit, context, TY_OK};
    const ty_status status = heap_each_block(heap, look_at_block, &walk);
    return walk.status ? walk.status : status;
}

// CD3.
ty_status find_words(ty_heap *heap, const code_record &own, translator &words, words_found *found) {
    finding all{words, *found, {heap, own}};
    return each_word(heap, own, words.range(), note_word, &all);
}

} // namespace taiyen
