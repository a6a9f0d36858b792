#include "fates.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

bool has_name(const code_object_1 &before, const os::loaded_object &now) {
    return before.program == now.program && (now.program || !strcmp(before.name, now.name));
}

bool has_build(const code_object_1 &before, const os::loaded_object &now) {
    return before.program == now.program && before.build == build_of(now);
}

object_fate find_fate(const code_object_1 &before, const list<os::loaded_object> &objects) {
    const os::loaded_object *moved = nullptr, *changed = nullptr;
    bool several = false;
    for (const os::loaded_object &now : objects) {
        if (has_build(before, now)) {
            if (now.load == before.load)
                return {&before, &now, fate::same};
            several = several || moved;
            moved = &now;
        }
        if (!moved && has_name(before, now)) {
            several = several || changed;
            changed = &now;
        }
    }
    if (several || (!moved && !changed))
        return {&before, nullptr, fate::missing};
    return {&before, moved ? moved : changed, moved ? fate::moved : fate::changed};
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The number at a place of a mangled name that is no length of a name: S1_, T0_, A10_, Li5E, Lin5E.
bool is_other_number(const char *name, size_t at) {
    const char last = name[at - 1];
    const auto literal = [name](size_t type) { return type >= 1 && name[type - 1] == 'L'; };
    return last == 'S' || last == 'T' || last == 'A' || (last >= 'a' && last <= 'z' && literal(at - 1)) ||
           (last == 'n' && literal(at - 2));
}

// Lambdas and types without a name (Ul, Ut), and one of several local things of one name: these are counted. Names
// within a mangled name follow their length. What is not understood counts, too.
bool is_counted(const char *name) {
    const size_t length = strlen(name);
    if (name[2] == 'T' && name[3] >= 'a' && name[3] <= 'z') // thunks have numbers of another kind
        return true;
    for (size_t at = 2; at < length;) {
        if (!is_digit(name[at])) {
            if (name[at] == 'U' && (name[at + 1] == 'l' || name[at + 1] == 't'))
                return true;
            ++at;
            continue;
        }
        const bool other = is_other_number(name, at);
        size_t number = 0;
        for (; is_digit(name[at]); ++at)
            number = std::min<size_t>(number * 10 + size_t(name[at] - '0'), length);
        if (other)
            continue;
        if (number == 0 || number > length - at)
            return true;
        at += number;
    }
    return false;
}

} // namespace

ty_status find_fates(const code_record &record, const list<os::loaded_object> &objects, list<object_fate> *fates) {
    for (uint64_t n = 0; n < record.count; ++n)
        if (ty_status status = fates->push(find_fate(record.objects[n], objects)))
            return status;
    return TY_OK;
}

bool name_is_certain(const char *name) {
    const char *colon = strrchr(name, ':');
    if (colon)
        name = colon + 1; // behind the source file's
    size_t end = strlen(name), digits = end;
    while (digits > 0 && is_digit(name[digits - 1]))
        --digits;
    if (digits < end && digits > 0 && name[digits - 1] == '.') // counter.0
        return false;
    return name[0] != '_' || name[1] != 'Z' || !is_counted(name);
}

ty_status name_index::create(const code_record &record, const code_table_1 *table) {
    record_ = record;
    const code_symbol_1 **places = nullptr;
    if (!table)
        return TY_OK;
    if (ty_status status = sorted_.extend(table->count, &places))
        return status;
    for (uint64_t n = 0; n < table->count; ++n)
        places[n] = &record.symbols[table->first + n];
    for (const code_symbol_1 *symbol : sorted_)
        whole_ = whole_ || strchr(record.name_of(*symbol), ':');
    std::sort(sorted_.begin(), sorted_.end(), [&record](const code_symbol_1 *a, const code_symbol_1 *b) {
        return strcmp(record.name_of(*a), record.name_of(*b)) < 0;
    });
    return TY_OK;
}

const code_symbol_1 *name_index::find(const char *name) const {
    const code_symbol_1 *const *at =
        std::lower_bound(sorted_.begin(), sorted_.end(), name, [this](const code_symbol_1 *symbol, const char *wanted) {
            return strcmp(record_.name_of(*symbol), wanted) < 0;
        });
    const code_symbol_1 *found = nullptr;
    for (; at != sorted_.end() && !strcmp(record_.name_of(**at), name); ++at) {
        if (found && found->value != (*at)->value)
            return nullptr;
        found = *at;
    }
    return found;
}

translator::~translator() {
    for (names *one : names_) {
        if (one)
            one->~names();
        free(one);
    }
}

ty_status translator::index_names(size_t n) {
    const object_fate &object = (*fates_)[n];
    names *made = nullptr;
    if (object.what == fate::changed) {
        void *memory = os::own_malloc(sizeof(names));
        if (!memory)
            return failure(TY_E_MEMORY, "index a program's symbols");
        made = new (memory) names{};
    }
    if (ty_status status = names_.push(made)) {
        free(made);
        return status;
    }
    if (!made)
        return TY_OK;
    made->table = before_.table_of(object.before->build);
    if (ty_status status = made->before.create(before_, made->table))
        return status;
    return made->after.create(after_, after_.table_of(build_of(*object.now)));
}

ty_status translator::create(const code_record &before, const code_record &after, const list<object_fate> &fates,
                             const list<os::loaded_object> &now) {
    before_ = before;
    after_ = after;
    fates_ = &fates;
    now_ = &now;
    known *place = nullptr;
    if (ty_status status = known_.extend(known_count, &place))
        return status;
    for (size_t n = 0; n < fates.count(); ++n) {
        if (ty_status status = index_names(n))
            return status;
        if (looks_at(fates[n]))
            add_range(fates[n].before->begin, fates[n].before->end);
    }
    for (const os::loaded_object &object : now) {
        const object_fate *of = std::find_if(fates.begin(), fates.end(), [&](const object_fate &one) {
            return one.now == &object && one.what == fate::same;
        });
        if (of == fates.end() || looks_at(*of))
            add_range(object.begin, object.end);
    }
    return TY_OK;
}

void translator::add_range(uint64_t begin, uint64_t end) {
    begin_ = std::min(begin_, begin);
    end_ = std::max(end_, end);
}

bool translator::is_here(uint64_t word) const {
    for (const os::loaded_object &object : *now_)
        if (word >= object.begin && word < object.end)
            return true;
    return false;
}

// The last one of those at or before the place.
const code_symbol_1 *translator::symbol_before(const code_table_1 *table, uint64_t offset) const {
    if (!table)
        return nullptr;
    const code_symbol_1 *first = before_.symbols + table->first;
    const code_symbol_1 *at =
        std::upper_bound(first, first + table->count, offset,
                         [](uint64_t value, const code_symbol_1 &symbol) { return value < symbol.value; });
    return at != first ? at - 1 : nullptr;
}

// CD2.
code_word translator::find_in_other_build(uint64_t word, const object_fate &object, const names &index) const {
    const uint64_t offset = word - object.before->load;
    const code_word lost{code_word::lost, 0, &object};
    code_word found = lost;
    const code_symbol_1 *last = symbol_before(index.table, offset);
    if (!last)
        return lost;
    bool named = !index.before.is_whole();
    for (const code_symbol_1 *at = last; at >= before_.symbols + index.table->first && at->value == last->value; --at) {
        const uint64_t within = offset - at->value;
        const char *name = before_.name_of(*at);
        if (within != 0 && within >= at->size)
            continue;
        named = true;
        if (!name_is_certain(name) || !index.before.find(name))
            continue;
        const code_symbol_1 *after = index.after.find(name);
        const bool table_of_functions = !strncmp(name, "_ZTV", 4);
        if (!after || (within != 0 && within >= after->size) ||
            (table_of_functions && within > 2 * sizeof(void *) && at->size != after->size))
            continue;
        const uint64_t value = object.now->load + after->value + within;
        if (found.what == code_word::leads_on && found.value != value)
            return lost; // two names of one place lead to different ones
        found = {code_word::leads_on, value, &object};
    }
    return named ? found : code_word{code_word::unnamed, 0, &object};
}

code_word translator::find(uint64_t word) {
    for (size_t n = 0; n < fates_->count(); ++n) {
        const object_fate &object = (*fates_)[n];
        if (word < object.before->begin || word >= object.before->end)
            continue;
        switch (object.what) {
        case fate::same:
            return {code_word::stays, 0, nullptr};
        case fate::moved:
            return {code_word::leads_on, word - object.before->load + object.now->load, &object};
        case fate::changed:
            return find_in_other_build(word, object, *names_[n]);
        case fate::missing:
            return {code_word::lost, 0, &object};
        }
    }
    return {code_word::elsewhere, 0, nullptr};
}

code_word translator::look_up(uint64_t word) {
    known &place = known_[word / sizeof word % known_count];
    if (place.word != word) // 0 is no address
        place = {word, find(word)};
    return place.found;
}

void translator::describe(uint64_t word, const object_fate &object, char *text, size_t bytes) const {
    const uint64_t offset = word - object.before->load;
    const code_symbol_1 *symbol = symbol_before(before_.table_of(object.before->build), offset);
    const char *name = symbol ? before_.name_of(*symbol) : "";
    const uint64_t within = symbol ? offset - symbol->value : offset;
    char file[40];
    snprintf(file, sizeof file, "%.39s", object.before->name);
    if (symbol && within < std::max<uint64_t>(symbol->size, 1))
        write_text(text, bytes, "%.56s + %llu of %s", name, (unsigned long long)within, file);
    else
        write_text(text, bytes, "0x%llx in %s", (unsigned long long)offset, file);
}

} // namespace taiyen
