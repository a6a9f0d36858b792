// The façade of the code layer: heaps that know the program's code. docs/design/code.md describes how it works;
// record_layout.hpp defines what a heap stores.
#pragma once

#include "code_words.hpp"
#include <taiyen/checks.h>
#include <taiyen/code.h>

namespace taiyen {

// What one open does about code. The validator sees what the open has found before any of its files is changed; finish
// comes when the heap is open.
//
// CD4: a refusal comes from the validator, while the files are unchanged; finish may fail only for lack of room.
// CD5: words and record change in one step: a transaction, or one snapshot; before that, no word of this process's
//      objects is in any of the heap's files.
class code_session {
public:
    explicit code_session(const ty_open_options &options) : mode_(options.mode), wanted_(options.code) {}
    open_validator validator() { return {this, validate_heap}; }
    // *heap is open; on failure it has been discarded, and is NULL. report may be NULL.
    ty_status finish(ty_heap **heap, ty_report *report);
    // After the memory of a snapshot heap that is open for writing became that of an earlier open. If it fails, some of
    // it may have changed.
    ty_status repoint_again(ty_heap *heap);
    // As part of ty_register_code, for a heap that is open for writing.
    ty_status register_objects(ty_heap *heap);

private:
    static ty_status validate_heap(void *self, ty_heap *heap) {
        return static_cast<code_session *>(self)->validate(heap);
    }
    ty_status validate(ty_heap *heap);
    ty_status validate_unbound(ty_heap *heap);
    ty_status validate_pinned();
    ty_status validate_mapped();
    ty_status check_fixed() const;
    ty_status check_words();
    ty_status check_one_step() const;
    ty_status check_history() const;
    ty_status check_what_was_there(ty_heap *heap, const os::array<code_number> &words) const;
    ty_status persist_numbers(ty_heap *heap, ty_code binding);
    ty_status make_blocks(ty_code binding);
    bool knows_all() const;
    bool is_new(const os::loaded_object &object) const;
    bool reads_only() const { return opens_for_reading(mode_); }
    bool changes_nothing() const {
        return objects_block_.count() == 0 && symbols_block_.count() == 0 && words_.repoint.count() == 0;
    }
    ty_status persist(ty_heap *heap); // of a snapshot heap with its next snapshot
    ty_status persist_durably(ty_heap *heap);
    ty_status persist_in_transaction(ty_heap *heap);
    ty_status repoint_private();
    void fill_report(ty_heap *heap, ty_report &report) const;

    ty_open_mode mode_;
    ty_code wanted_;
    ty_heap *heap_ = nullptr;
    code_record before_{}, after_{};
    os::array<os::loaded_object> objects_;
    os::array<object_match> matches_;
    translator translator_;
    words_found words_;
    os::array<char> objects_block_, symbols_block_, numbers_block_; // to be stored; empty: the stored block stays
};

// ty_each_code_word.
ty_status each_code_word(ty_heap *heap, ty_code_word_callback *callback, void *context);

// CD9: how many such words of a heap without a record lie near its roots: ty_report.lost_code_words.
ty_status count_near_code_words(ty_heap *heap, uint64_t *words);

// ty_each_unreachable.
ty_status each_unreachable(ty_heap *heap, ty_site_callback *callback, void *context);

// The code option that an open heap was created with.
ty_code code_of(ty_heap *heap);
// CD11: whether the record says where the words in memory lead: not of a mapped heap that is open for reading, whose
// words were repointed in memory alone. What copies the memory asks first. TY_E_UNSUPPORTED.
ty_status check_words_as_recorded(ty_heap *heap, const char *call);

} // namespace taiyen
