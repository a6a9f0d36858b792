// Walks from the roots over all objects that type descriptors lead to; if blocks have moved, gives addresses their new
// values on the way.
//
// All decisions are made with new addresses: a word that was fixed holds one, and any other is translated first. So the
// order in which words of an object are met, or several views of it, does not matter.
//
// SH5: each object is visited once as each of its type descriptors: a bit at its first word records it for the type
// descriptor of its block, and a set of (object, type descriptor) for all others. SH6: a word is fixed at most once:
// one bit per word records that it was met. SH7: no object, array or word extends beyond its live block, whatever
// counts and addresses say. SH8: what is still to be visited is in a list in separate memory, not on the thread's
// stack; calls nest no deeper than type descriptors do.
#pragma once

#include "../blocks/blocks.hpp"
#include "block_index.hpp"
#include "object_set.hpp"
#include "plan.hpp"
#include "word_bits.hpp"
#include <unordered_set>

namespace taiyen::pack {

class walker {
public:
    // moved NULL: nothing moves. before: the moves of the heap in which the addresses were made; NULL: base, size
    // classes and room of blocks are this heap's.
    walker(ty_heap *heap, const descriptor_set &set, ty_moved_callback *moved, void *context,
           const ty_moves *before = nullptr)
        : heap_(heap), set_(set), moved_(moved), moved_context_(context), before_(before), known_(set) {}
    walker(const walker &) = delete;
    walker &operator=(const walker &) = delete;

    ty_status run();
    // Calls the hooks for moves, once all addresses are right.
    void call_moved_hooks() const;

    // The results. types: what each block holds (plans::of); 0: not reached.
    const block_index &index() const { return index_; }
    // The live block that an address lies in, with the room that it had before a move (SH13: the audit and the move
    // agree).
    bool find(const void *address, found_block &found) const {
        return index_.find(address, found) && static_cast<const char *>(address) < as_before(found).end();
    }
    template <class function>
    void each_block(const function &callback) const {
        index_.each([&](found_block block) { callback(as_before(block)); });
    }
    const std::vector<uint32_t> &types() const { return types_; }
    const plans &known() const { return known_; }
    const std::deque<step> &root_steps() const { return root_steps_; }
    const std::vector<std::string> &roots_without_descriptor() const { return roots_without_descriptor_; }
    const std::vector<std::string> &descriptors_without_root() const { return descriptors_without_root_; }
    const object_set &others() const { return others_; }
    bool is_start(const void *word) const { return starts_.test(word); }
    bool is_covered(const void *word) const { return words_.test(word); }
    // The new address for a value in a word that no field names; NULL: no live block was there.
    const void *new_place_of(uint64_t address) const {
        auto *old = reinterpret_cast<const void *>(address);
        return moved_ != nullptr ? moved_(old, moved_context_) : old;
    }
    bool moves() const { return moved_ != nullptr; }
    const void *old_base() const {
        return before_ != nullptr ? reinterpret_cast<const void *>(before_->old().base) : index_.base();
    }
    // Block sizes of the heap's classes, as they were before a move; increasing.
    const std::vector<size_t> &class_sizes() const { return class_sizes_; }
    // The library's own blocks, and the text at TY_TYPES_ROOT.
    bool is_internal(size_t ordinal) const { return types_[ordinal] == internal_; }
    bool is_text(size_t ordinal) const { return types_[ordinal] == text_; }
    uint64_t internal_blocks() const { return internal_blocks_; }
    uint64_t dead_words() const { return dead_words_.size(); }
    uint64_t objects = 0;
    uint64_t pointers = 0;
    uint64_t dead = 0;

    // For hooks (tracer.cpp).
    struct object {
        char *at;
        found_block block;
        unsigned depth;
    };
    void hooked_pointer(plan &by, const object &in, void *word, const ty_type *descriptor, size_t count, uint64_t mask);
    bool check_mask(const plan &by, uint64_t mask);
    void hooked_reference(plan &by, const object &in, void *word, uint64_t mask);
    void hooked_nested(plan &by, const object &in, void *objects, const ty_type *descriptor, size_t count);
    void *hooked_address(plan &by, const void *address, const ty_type *descriptor, size_t count);

private:
    struct item {
        char *at;
        size_t count;
        plan *as;
        bool alone; // not in an array: its last field may extend beyond the object
    };
    struct pending {
        void *word;
        uint64_t value;
        size_t ordinal;
        step *by;
    };

    found_block &as_before(found_block &block) const {
        if (before_ != nullptr)
            block.bytes = before_->old_block_bytes(block.address, block.bytes);
        return block;
    }
    ty_status prepare();
    ty_status learn_class_sizes();
    ty_status learn_class_sizes_of(ty_heap *heap);
    ty_status start_roots();
    void start_root(const char *name, void *address);
    void drain();
    void check_references();

    // Visits an object; tail: how far an array at the object's end may extend.
    void visit(plan &as, const object &in, char *tail);
    void call_trace(plan &as, const object &in);
    void visit_step(step &s, const object &in, char *tail);
    size_t count_here(step &s, const object &in, char *first, char *limit);
    void visit_nested(step &s, const object &in, char *first, size_t count, char *tail);
    void visit_pointer(step &s, const object &in, char *word);
    void visit_reference(step &s, char *word);
    void visit_heap(step &s, char *word);
    void visit_place(step &s, const object &in, char *word);

    // words.cpp
    bool meet(step &s, char *word, uint64_t mask, char *&target, found_block &to);
    bool target_of(const char *word, uint64_t mask, char *&target, found_block &to) const;
    char *place_in(const char *word, uint64_t mask, const found_block &block) const;
    void write(char *word, uint64_t mask, const char *target);
    void add_dead(step &s, dead_kind kind, const void *word, uint64_t value, uint64_t wanted = 0, uint64_t room = 0);
    size_t count_there(step &s, const object &in, const char *word, const char *target, const found_block &to);

    // tails.cpp. SH11: addresses of reached blocks in elements after an array's count are kept in step, too: mostly
    // nobody reads them, but a program that does finds them right.
    void note_tail(const step &s, char *target, size_t count, const found_block &to);
    void fix_tails();
    void fix_spare(const plan &as, char *at);
    void fix_word(const step &s, char *word);

    // reach.cpp
    void reach(step &s, const void *word, char *target, const found_block &to, size_t count);
    void reach_bytes(step &s, const found_block &to);
    void reach_objects(plan &as, char *first, size_t count, const found_block &to);
    void reach_run(plan &as, char *first, size_t count, bool known, bool alone);
    uint32_t label_of(step &s);
    plan *plan_of(const ty_type *descriptor);

    ty_heap *heap_;
    const descriptor_set &set_;
    ty_moved_callback *moved_;
    void *moved_context_;
    const ty_moves *before_;
    plans known_;
    block_index index_;
    std::vector<size_t> class_sizes_;
    std::vector<uint32_t> types_; // by ordinal
    word_bits words_;             // met as an address
    word_bits starts_;            // an object of the block's type starts here
    object_set others_;           // objects of other types than their block's
    object_set hooked_;           // objects whose hooks have been called
    std::vector<std::pair<plan *, char *>> moved_hooks_;
    struct spare_room {
        char *at;
        char *end;
        const plan *as;
    };
    std::vector<spare_room> tails_;
    // Arrays of at least so many objects that were walked, by type descriptor and alignment within it, from first to
    // end.
    static constexpr size_t long_array = 64;
    std::map<std::pair<uint32_t, uintptr_t>, std::map<char *, char *>> long_arrays_;
    std::vector<item> list_;
    std::vector<pending> references_;             // into blocks that were not reached yet
    std::unordered_set<const void *> dead_words_; // in a fix: they keep old addresses
    std::deque<step> root_steps_;
    std::vector<std::string> roots_without_descriptor_;
    std::vector<std::string> descriptors_without_root_;
    uint32_t internal_ = 0;
    uint32_t text_ = 0;
    uint64_t internal_blocks_ = 0;
    ty_status status_ = TY_OK;
};

// Valid for any word: the program's type may overlap it in any way.
inline uint64_t word_at(const void *word) {
    uint64_t value;
    __builtin_memcpy(&value, word, sizeof value);
    return value;
}

// Checks that there are a heap and a set to walk with.
ty_status check_walk(ty_heap *heap, const ty_types *descriptors, const char *operation);

} // namespace taiyen::pack
