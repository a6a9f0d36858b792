// Room for more elements after an array's count. It mostly holds remains of elements.
#include "walker.hpp"

namespace taiyen::pack {

void walker::note_tail(const step &s, char *target, size_t count, const found_block &to) {
    bool counted = s.there != nullptr && (s.there->kind == TY_COUNT_FIELD || s.there->kind == TY_COUNT_END);
    if (counted && s.to != nullptr && !s.to->plain && target + count * s.to->size < to.end())
        tails_.push_back({target + count * s.to->size, to.end(), s.to});
}

// SH11: elements after an array's count are kept in step. Runs once all that is reached is known.
void walker::fix_tails() {
    for (const spare_room &one : tails_)
        for (char *at = one.at; one.end - at >= static_cast<ptrdiff_t>(one.as->size); at += one.as->size)
            fix_spare(*one.as, at);
}

void walker::fix_spare(const plan &as, char *at) {
    for (const step &s : as.steps) {
        if (s.field == nullptr || s.field->here.kind != TY_COUNT_FIXED)
            continue;
        for (size_t n = 0; n < s.number; ++n) {
            char *place = at + s.offset + n * s.element;
            if (s.kind == TY_FIELD_NESTED)
                fix_spare(*s.to, place);
            else if (s.kind == TY_FIELD_POINTER || s.kind == TY_FIELD_REFERENCE)
                fix_word(s, place);
        }
    }
}

void walker::fix_word(const step &s, char *word) {
    char *target;
    found_block to;
    if (words_.test(word))
        return;
    bool alive = target_of(word, s.mask, target, to);
    if (alive && types_[to.ordinal] == 0)
        return; // it may be meant as a pointer: the pointer audit reports it
    words_.set(word);
    if (alive && moved_)
        write(word, s.mask, target);
}

} // namespace taiyen::pack
