// Object matching: what became of the objects that a heap has recorded, and where words that point into them point now.
#pragma once

#include "code_record.hpp"

namespace taiyen {

enum class match_kind : uint8_t {
    same,    // the same build at the same place
    moved,   // the same build elsewhere
    changed, // another build
    missing, // not loaded now; or several objects match
};
struct object_match {
    const code_object *before;
    const os::loaded_object *now; // NULL: missing
    match_kind what;
};
ty_status match_objects(const code_record &record, const os::array<os::loaded_object> &objects,
                        os::array<object_match> *matches);

// The symbols of one build, by their names.
class name_index {
public:
    ty_status create(const code_record &record, const code_table *table); // NULL: no symbols
    // The only one of that name (or the first of those at one address); NULL: none, or uncertain, as other symbols of
    // that name have numbers (find_first_of_name).
    const code_symbol *find(const char *name) const;
    // Whether it also has the symbols that are local to a source file; stripped objects lack them.
    bool is_whole() const { return whole_; }

private:
    ty_status note_shared_names();
    bool is_shared(const char *name) const;

    code_record record_;
    os::array<const code_symbol *> sorted_;
    os::array<char> shared_text_; // names that others have with a number
    os::array<size_t> shared_;    // where each begins in it
    bool whole_ = false;
};

struct code_word {
    enum { elsewhere, stays, leads_on, lost, unnamed } what;
    uint64_t value;             // leads_on: the new value
    const object_match *object; // lost, or unnamed (nothing there had a name): the object that it points into
    uint64_t array;             // leads_on: not 0: what ends at the word began there
    bool is_end; // it leads on if it is that end, and to nothing that had a name if not; else the other way: it leads
                 // elsewhere if it is that end
};

struct address_range {
    uint64_t begin;
    uint64_t end;
};

// CD2: a word is repointed to what it pointed to: in the same build by as much as its object has moved, in another
//      build to the symbol of the same name that is the only one of that name, in both builds.
class translator {
public:
    translator() = default;
    translator(const translator &) = delete;
    translator &operator=(const translator &) = delete;
    ~translator();
    // All must outlive it. now: the objects of this process.
    ty_status create(const code_record &before, const code_record &after, const os::array<object_match> &matches,
                     const os::array<os::loaded_object> &now);
    address_range range() const { return begin_ < end_ ? address_range{begin_, end_} : address_range{0, 0}; }
    // Whether an object of this process lies there.
    bool is_here(uint64_t word) const;
    code_word look_up(uint64_t word); // of that range
    // Whether the word pointed to a variable or function that no code gets by its name now, as another object's symbol
    // is first. Whether or not the object lies where it lay; `object` has the word.
    bool is_replaced(uint64_t word, const object_match &object) const;
    bool may_be_replaced() const { return may_be_replaced_; } // in any object
    // For people: the name of what a word points to, or its offset.
    void describe(uint64_t word, const object_match &object, char *text, size_t bytes) const;

private:
    struct names {
        name_index before, after;
        const code_table *table;
        mutable os::array<const code_symbol *> now; // of each symbol of the table; see find_symbol()
    };
    struct known {
        uint64_t word;
        code_word found;
    };
    static constexpr size_t known_count = 1024;

    code_word find(uint64_t word);
    code_word find_in_object(uint64_t word, const object_match &object, size_t n) const;
    bool is_replaced(const code_symbol &symbol, const code_record &record, const object_match &object) const;
    bool is_hidden_now(const code_symbol &symbol, const object_match &object) const;
    bool is_unique_elsewhere(const char *name, const object_match &object) const;
    bool is_gone(const code_symbol &symbol, const names &index) const;
    const object_match *find_now(const void *place) const;
    bool had(const object_match &object, const char *name) const;
    code_word find_in_other_build(uint64_t word, const object_match &object, const names &index) const;
    const code_symbol *find_symbol(const code_symbol &symbol, const names &index) const;
    uint64_t find_by_name(const code_symbol &symbol, uint64_t within, const names &index) const;
    const object_match *find_object(uint64_t word, size_t *n) const;
    const code_symbol *symbol_that_ends(const code_symbol *first, const code_symbol *at, uint64_t offset) const;
    ty_status index_names(size_t n);
    // In objects at their old place, only known numbers and replaced symbols matter.
    bool looks_at(const object_match &object) const {
        return object.what != match_kind::same || before_.number_count || may_be_replaced_;
    }
    void add_range(uint64_t begin, uint64_t end);
    static const code_symbol *symbol_before(const code_record &record, const code_table *table, uint64_t offset);

    code_record before_{}, after_{};
    const os::array<object_match> *matches_ = nullptr;
    const os::array<os::loaded_object> *now_ = nullptr;
    os::array<names *> names_;
    bool program_changed_ = false;
    bool may_be_replaced_ = false; // other objects are loaded, or in another order
    os::array<known> known_;
    uint64_t begin_ = UINT64_MAX, end_ = 0; // of everything that is inspected
};

} // namespace taiyen
