#include "object_matching.hpp"

#include "names.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

bool has_name(const code_object &before, const os::loaded_object &now) {
    return is_program(before) == now.program && (now.program || !strcmp(before.name, now.name));
}

bool has_build(const code_object &before, const os::loaded_object &now) {
    return is_program(before) == now.program && before.build == build_of(now);
}

// The only object for which the test holds; NULL: none, or several (*several).
template <class Test>
const os::loaded_object *find_only(const os::array<os::loaded_object> &objects, Test &&holds, bool *several) {
    const os::loaded_object *found = nullptr;
    *several = false;
    for (const os::loaded_object &now : objects)
        if (holds(now)) {
            *several = found;
            if (*several)
                return nullptr;
            found = &now;
        }
    return found;
}

// Whether the record has another object of the same build, and, if by_name, of the same name. One of the same name that
// was gone when the other one appeared is the same file, at its earlier place.
bool has_twin(const code_record &record, const code_object &object, bool by_name) {
    for (uint64_t n = 0; n < record.count; ++n) {
        const code_object &other = record.objects[n];
        if (&other == &object || is_program(other) != is_program(object) || !(other.build == object.build))
            continue;
        const bool same_file = !strcmp(other.name, object.name) && (was_gone(other) || was_gone(object));
        if (!same_file && (!by_name || !strcmp(other.name, object.name)))
            return true;
    }
    return false;
}

// A file may have been renamed: but not to the name of another object, nor while another build has its name.
bool may_be_renamed(const code_record &record, const code_object &before, const os::loaded_object &now,
                    const os::array<os::loaded_object> &objects) {
    for (uint64_t n = 0; n < record.count; ++n)
        if (has_name(record.objects[n], now))
            return false;
    return std::none_of(objects.begin(), objects.end(),
                        [&](const os::loaded_object &one) { return has_name(before, one); });
}

// Copies of one file have one build: their names distinguish them.
object_match find_match(const code_record &record, const code_object &before,
                        const os::array<os::loaded_object> &objects) {
    const object_match missing{&before, nullptr, match_kind::missing};
    bool several = false;
    const auto built = [&](const os::loaded_object &now) { return has_build(before, now); };
    const auto named = [&](const os::loaded_object &now) { return has_name(before, now); };
    const os::loaded_object *now = find_only(objects, built, &several);
    if (several || (now && has_twin(record, before, false) && !fault("word_leads_into_another_copy_of_a_plug_in"))) {
        now = find_only(
            objects, [&](const os::loaded_object &one) { return built(one) && named(one); }, &several);
        if (several || has_twin(record, before, true))
            return missing;
    }
    if (now && (named(*now) || may_be_renamed(record, before, *now, objects)))
        return {&before, now, now->load == before.load ? match_kind::same : match_kind::moved};
    if (now)
        return missing;
    // An object that the record has unchanged is another one: plug-ins in several folders may have one name.
    const auto known = [&](const os::loaded_object &one) {
        return std::any_of(record.objects, record.objects + record.count,
                           [&](const code_object &other) { return has_build(other, one) && has_name(other, one); });
    };
    now = find_only(
        objects, [&](const os::loaded_object &one) { return named(one) && !known(one); }, &several);
    return now ? object_match{&before, now, match_kind::changed} : missing;
}

} // namespace

ty_status match_objects(const code_record &record, const os::array<os::loaded_object> &objects,
                        os::array<object_match> *matches) {
    for (uint64_t n = 0; n < record.count; ++n)
        if (ty_status status = matches->push(find_match(record, record.objects[n], objects)))
            return status;
    return TY_OK;
}

ty_status name_index::create(const code_record &record, const code_table *table) {
    record_ = record;
    const code_symbol **places = nullptr;
    if (!table)
        return TY_OK;
    if (ty_status status = sorted_.extend(table->count, &places))
        return status;
    for (uint64_t n = 0; n < table->count; ++n)
        places[n] = &record.symbols[table->first + n];
    for (const code_symbol *symbol : sorted_)
        whole_ = whole_ || strpbrk(record.name_of(*symbol), ":?");
    if (ty_status status = note_shared_names())
        return status;
    std::sort(sorted_.begin(), sorted_.end(), [&record](const code_symbol *a, const code_symbol *b) {
        return strcmp(record.name_of(*a), record.name_of(*b)) < 0;
    });
    return TY_OK;
}

ty_status name_index::note_shared_names() {
    char first[looked_at_bytes_max];
    for (const code_symbol *symbol : sorted_) {
        if (!find_first_of_name(record_.name_of(*symbol), first))
            continue;
        char *place = nullptr;
        const size_t bytes = strlen(first) + 1;
        if (ty_status status = shared_text_.extend(bytes, &place))
            return status;
        memcpy(place, first, bytes);
        if (ty_status status = shared_.push(size_t(place - shared_text_.begin())))
            return status;
    }
    const char *text = shared_text_.begin();
    std::sort(shared_.begin(), shared_.end(), [text](size_t a, size_t b) { return strcmp(text + a, text + b) < 0; });
    return TY_OK;
}

bool name_index::is_shared(const char *name) const {
    const char *text = shared_text_.begin();
    const size_t *at = std::lower_bound(shared_.begin(), shared_.end(), name,
                                        [text](size_t a, const char *wanted) { return strcmp(text + a, wanted) < 0; });
    return at != shared_.end() && !strcmp(text + *at, name);
}

const code_symbol *name_index::find(const char *name) const {
    if (is_shared(name))
        return nullptr;
    const code_symbol *const *at =
        std::lower_bound(sorted_.begin(), sorted_.end(), name, [this](const code_symbol *symbol, const char *wanted) {
            return strcmp(record_.name_of(*symbol), wanted) < 0;
        });
    const code_symbol *found = nullptr;
    for (; at != sorted_.end() && !strcmp(record_.name_of(**at), name); ++at) {
        if (found && found->value != (*at)->value && !fault("first_symbol_of_a_name_believed"))
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
    const object_match &object = (*matches_)[n];
    names *made = nullptr;
    if (object.what == match_kind::changed) {
        void *memory = os::internal_malloc(sizeof(names));
        if (!memory)
            return failure(TY_E_MEMORY, "index a program's symbols")
                .remedy("free memory, or raise the process's limits");
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
    const code_symbol **place = nullptr;
    if (ty_status status = made->table ? made->now.extend(made->table->count, &place) : TY_OK)
        return status;
    return made->after.create(after_, after_.table_of(build_of(*object.now)));
}

namespace {

// Whether the process has the objects that the record has, in the same order.
bool are_same(const os::array<object_match> &matches, const os::array<os::loaded_object> &now) {
    size_t n = 0;
    for (const object_match &object : matches) {
        if (was_gone(*object.before))
            continue;
        const bool same = object.what == match_kind::same || object.what == match_kind::moved;
        if (!same || n == now.count() || object.now != &now[n++])
            return false;
    }
    return n == now.count();
}

} // namespace

ty_status translator::create(const code_record &before, const code_record &after,
                             const os::array<object_match> &matches, const os::array<os::loaded_object> &now) {
    before_ = before;
    after_ = after;
    matches_ = &matches;
    now_ = &now;
    known *place = nullptr;
    if (ty_status status = known_.extend(known_count, &place))
        return status;
    for (size_t n = 0; n < matches.count(); ++n) {
        if (ty_status status = index_names(n))
            return status;
        if (is_program(*matches[n].before))
            program_changed_ = matches[n].what == match_kind::changed;
    }
    may_be_replaced_ = !are_same(matches, now);
    for (size_t n = 0; n < matches.count(); ++n) {
        if (looks_at(matches[n]))
            add_range(matches[n].before->begin, matches[n].before->end);
    }
    for (const os::loaded_object &object : now) {
        const object_match *of = std::find_if(matches.begin(), matches.end(), [&](const object_match &one) {
            return one.now == &object && one.what == match_kind::same;
        });
        if (of == matches.end() || looks_at(*of))
            add_range(object.begin, object.end);
    }
    return TY_OK;
}

void translator::add_range(uint64_t begin, uint64_t end) {
    begin_ = std::min(begin_, begin);
    end_ = std::max(end_, end + 1); // also the address right after it
}

bool translator::is_here(uint64_t word) const {
    for (const os::loaded_object &object : *now_)
        if (word >= object.begin && word <= object.end)
            return true;
    return false;
}

// The last of its symbols at or before the offset.
const code_symbol *translator::symbol_before(const code_record &record, const code_table *table, uint64_t offset) {
    if (!table)
        return nullptr;
    const code_symbol *first = record.symbols + table->first;
    const code_symbol *at =
        std::upper_bound(first, first + table->count, offset,
                         [](uint64_t value, const code_symbol &symbol) { return value < symbol.value; });
    return at != first ? at - 1 : nullptr;
}

// The symbol of the new build that matches one of the old build; NULL: none, or uncertain. Searched for once.
const code_symbol *translator::find_symbol(const code_symbol &symbol, const names &index) const {
    static const code_symbol none{};
    const code_symbol *&looked_up = index.now[size_t(&symbol - (before_.symbols + index.table->first))];
    if (!looked_up) {
        const char *name = before_.name_of(symbol);
        looked_up = name_is_certain(name) && index.before.find(name) ? index.after.find(name) : nullptr;
        looked_up = looked_up ? looked_up : &none;
    }
    return looked_up == &none ? nullptr : looked_up;
}

// Whether the new build certainly lacks a name that the old one had.
bool translator::is_gone(const code_symbol &symbol, const names &index) const {
    const char *name = before_.name_of(symbol);
    return name_is_certain(name) && index.before.find(name) && !index.after.find(name);
}

// Where a place within a symbol, or right after it, is now, as an offset; UINT64_MAX: nowhere, or uncertain.
uint64_t translator::find_by_name(const code_symbol &symbol, uint64_t within, const names &index) const {
    const code_symbol *after = find_symbol(symbol, index);
    if (!after)
        return UINT64_MAX;
    const bool table_of_functions = !strncmp(before_.name_of(symbol), "_ZTV", 4),
               same_size = symbol.size == after->size;
    const bool is_end = within != 0 && within == symbol.size;
    if ((within != 0 && within >= after->size && !same_size) ||
        ((is_end || (table_of_functions && within > 2 * sizeof(void *))) && !same_size))
        return UINT64_MAX;
    return (fault("word_leads_to_the_symbols_old_place") ? symbol.value : after->value) + within;
}

// The data symbol that ends at the offset: an address right after an array points there.
const code_symbol *translator::symbol_that_ends(const code_symbol *first, const code_symbol *at,
                                                uint64_t offset) const {
    while (at >= first && at->value == offset)
        --at;
    const uint64_t value = at >= first ? at->value : 0;
    for (; at >= first && at->value == value; --at)
        if (at->size != 0 && at->size != UINT32_MAX && at->size == offset - at->value)
            return at;
    return nullptr;
}

// CD2: a word is repointed to what it pointed to.
code_word translator::find_in_other_build(uint64_t word, const object_match &object, const names &index) const {
    const uint64_t offset = word - object.before->load, load = object.now->load;
    code_word found{code_word::lost, 0, &object, 0, false};
    const code_symbol *last = symbol_before(before_, index.table, offset);
    if (!last)
        return found;
    const code_symbol *first = before_.symbols + index.table->first;
    bool named = false, gone = false;
    for (const code_symbol *at = last; at >= first && at->value == last->value; --at) {
        const uint64_t within = offset - at->value;
        if (within != 0 && within >= at->size)
            continue;
        named = true;
        const uint64_t now = find_by_name(*at, within, index);
        gone = gone || is_gone(*at, index);
        if (now == UINT64_MAX)
            continue;
        if (found.what == code_word::leads_on && found.value != load + now)
            return {code_word::lost, 0, &object, 0, false}; // two names of one place now have different addresses
        found = {code_word::leads_on, load + now, &object, 0, false};
    }
    if (gone) // the linker may have merged it with another one of the same code; and the missing one may be meant
        return {code_word::lost, 0, &object, 0, false};
    const code_symbol *ended = symbol_that_ends(first, last, offset);
    const uint64_t end = ended ? find_by_name(*ended, ended->size, index) : UINT64_MAX;
    const uint64_t array = ended ? object.before->load + ended->value : 0;
    if (end != UINT64_MAX && !named && index.before.is_whole()) // something without a name may begin there: a literal
        return {code_word::leads_on, load + end, &object, array, true};
    if (end != UINT64_MAX && found.what == code_word::leads_on && found.value != load + end)
        found.array = array;
    return named || !index.before.is_whole() ? found : code_word{code_word::unnamed, 0, &object, 0, false};
}

// Right after an object, its last array may end there; but not where another object begins.
const object_match *translator::find_object(uint64_t word, size_t *n) const {
    const object_match *ends = nullptr;
    for (const object_match &object : *matches_) {
        if (word < object.before->begin || word > object.before->end)
            continue;
        ends = &object;
        *n = size_t(&object - matches_->begin());
        if (word != object.before->end)
            break;
    }
    return ends;
}

// The object that has an address; NULL if none.
const object_match *translator::find_now(const void *place) const {
    const auto address = reinterpret_cast<uint64_t>(place);
    for (const object_match &object : *matches_)
        if (object.now && address >= object.now->begin && address < object.now->end)
            return &object;
    return nullptr;
}

bool translator::had(const object_match &object, const char *name) const {
    const code_table *table = before_.table_of(object.before->build);
    const size_t bytes = strcspn(name, "@");
    for (uint64_t n = 0; table && n < table->count; ++n) {
        const code_symbol &symbol = before_.symbols[table->first + n];
        const char *own = before_.name_of(symbol);
        if (!(symbol.name & code_own) && !strncmp(own, name, bytes) && (own[bytes] == '\0' || own[bytes] == '@'))
            return true;
    }
    return false;
}

// If several objects have a symbol of one name, the dynamic linker gives all of them the first one's: it does so for a
// program's copy of a library's variable (a copy relocation of the psABI). Excluded are constants, of which each copy
// serves as well as another: tables of functions, and type information of C++. So are functions of C++: all copies have
// the same text.
bool translator::is_replaced(const code_symbol &symbol, const code_record &record, const object_match &object) const {
    const char *name = record.name_of(symbol);
    const bool is_cpp = !strncmp(name, "_Z", 2), is_constant = !strncmp(name, "_ZT", 3);
    if ((symbol.name & code_own) || is_constant || (is_cpp && symbol.size == 0))
        return false;
    char plain[looked_at_bytes_max];
    const size_t bytes = strcspn(name, "@");
    if (bytes >= sizeof plain)
        return true; // cannot be ruled out
    memcpy(plain, name, bytes);
    plain[bytes] = '\0';
    const void *used = os::find_for_all(plain);
    const auto address = reinterpret_cast<uint64_t>(used);
    if (!used)
        return is_cpp && is_unique_elsewhere(plain, object);
    if (address >= object.now->begin && address < object.now->end)
        return false;
    if (is_program(*object.before))
        return symbol.size != 0 && is_hidden_now(symbol, object);
    const object_match *by = find_now(used);
    return !by || ((by->before > object.before || !had(*by, plain)) && !fault("replaced_symbol_not_noticed"));
}

// The program's own symbol is the first one, unless the program hides it.
bool translator::is_hidden_now(const code_symbol &symbol, const object_match &object) const {
    if (object.what != match_kind::changed)
        return false;
    const code_symbol *now = find_symbol(symbol, *names_[size_t(&object - matches_->begin())]);
    return now && (now->name & code_own);
}

// Static data of templates and the like exist once for all loaded objects, even for those that otherwise see no symbols
// of each other (STB_GNU_UNIQUE): the first loaded object has them.
bool translator::is_unique_elsewhere(const char *name, const object_match &object) const {
    for (const object_match &other : *matches_) {
        const bool was_before = other.before < object.before && !was_gone(*other.before),
                   is_before = other.now && other.now < object.now;
        if (&other != &object && was_before != is_before && had(other, name))
            return true;
    }
    return false;
}

// A possible replacement counts, too: no symbols of the library are known, and the program is another one.
bool translator::is_replaced(uint64_t word, const object_match &object) const {
    if (!may_be_replaced_ || object.what == match_kind::missing || is_of_kernel(*object.before))
        return false;
    const code_record &record = object.what == match_kind::changed ? before_ : after_;
    const code_table *table = record.table_of(object.before->build);
    if (!table)
        return program_changed_;
    const uint64_t offset = word - object.before->load;
    const code_symbol *first = record.symbols + table->first, *last = symbol_before(record, table, offset);
    for (const code_symbol *at = last; at && at >= first && at->value == last->value; --at) {
        const uint64_t within = offset - at->value;
        if ((within == 0 || within < at->size) && is_replaced(*at, record, object))
            return true;
    }
    return false;
}

code_word translator::find_in_object(uint64_t word, const object_match &object, size_t n) const {
    if (is_replaced(word, object))
        return {code_word::lost, 0, &object, 0, false};
    switch (object.what) {
    case match_kind::same:
        return {code_word::stays, 0, nullptr, 0, false};
    case match_kind::moved:
        if (fault("words_of_moved_code_stay"))
            return {code_word::stays, word, &object, 0, false};
        return {code_word::leads_on, word - object.before->load + object.now->load, &object, 0, false};
    case match_kind::changed:
        return find_in_other_build(word, object, *names_[n]);
    case match_kind::missing:
        break;
    }
    return {code_word::lost, 0, &object, 0, false};
}

code_word translator::find(uint64_t word) {
    size_t n = 0;
    const object_match *object = find_object(word, &n);
    return object ? find_in_object(word, *object, n) : code_word{code_word::elsewhere, 0, nullptr, 0, false};
}

code_word translator::look_up(uint64_t word) {
    known &place = known_[word / sizeof word % known_count];
    if (place.word != word) // 0 is no address
        place = {word, find(word)};
    return place.found;
}

void translator::describe(uint64_t word, const object_match &object, char *text, size_t bytes) const {
    const uint64_t offset = word - object.before->load;
    const code_symbol *symbol = symbol_before(before_, before_.table_of(object.before->build), offset);
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
