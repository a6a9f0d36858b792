// The marks of one heap, as a tree of versions of its pages.
//
// Each mark keeps the pages that changed since its parent, as they were at the mark. So a page at a mark is the newest
// copy on the way from there to the root; if there is none, it is as in the *base*, the state before the first mark,
// which the owner of the tree knows how to read. An index has the newest copy of each page on the way to the current
// mark, so that a return costs what differs, and not what is on the way to the root.
//
// MK1: A page at a mark: the copy of the mark or of its nearest ancestor that has one, else the base. The index says
//      the same for the current mark, and the `before` of an entry for the mark's parent.
// MK2: The heap's memory is the state of the current mark, but for the pages in `changed`.
// MK3: A mark that was dropped stays as long as two of its children need its copies; it has no name. The current mark
//      has one, or is the base.
#pragma once

#include "page_slots.hpp"
#include "src/heap/heap.hpp"
#include <taiyen/marks.h>

namespace taiyen {

class mark_tree {
public:
    static constexpr uint32_t base = 0; // the root: the state before the first mark

    ty_status create(uint64_t page_count, page_store &store);
    void destroy();
    bool exists() const { return nodes_.count() != 0; }
    size_t count() const { return by_name_.count(); } // marks with a name

    // Expected: TY_E_NOT_FOUND with a detail.
    ty_status find(const char *name, uint32_t *mark) const;
    // Expected: TY_E_EXISTS, with a detail.
    ty_status check_unused(const char *name) const;
    // A mark of the state now becomes the current one. pages: rising; those of `changed` that are in use. Only these
    // leave the set: others may differ from the mark, and it does not matter. used_pages: for the mark's return.
    // Expected: TY_E_MEMORY, and nothing has changed.
    ty_status add(const char *name, const char *memory, const page_list &pages, uint64_t used_pages);
    // Adds the pages that differ between the current mark and this one.
    void add_differences(uint32_t mark, os::page_set &pages) const;
    // Adds the pages of which the current mark or an ancestor of it has a copy.
    void add_copied(os::page_set &pages) const;
    // The mark is the current one: the caller copies what differs. Cannot fail, and can be taken back.
    void move_to(uint32_t mark);
    uint32_t current() const { return current_; }
    uint64_t used_pages() const { return nodes_[current_]->used_pages; }
    // A page at the current mark; none: as in the base.
    uint32_t slot_of(uint64_t page) const { return newest_.get(page); }
    void drop(uint32_t mark); // the memory stays as it is

    os::page_set changed;

    // ---- For a store that outlives the process

    struct entry {
        uint32_t page;
        uint32_t slot;
        uint32_t before; // the newest copy on the way from the parent to the root
    };
    struct node {
        char name[TY_MARK_NAME_MAX + 1]; // empty: dropped, or the base
        uint32_t parent;
        uint32_t first_child;
        uint32_t next;      // among its parent's children
        uint32_t next_down; // of move_to
        bool on_path;       // from the base to the current mark
        uint64_t time_ns;
        uint64_t used_pages;
        uint64_t session;         // of the open that made it
        os::array<entry> entries; // by page
        stored_entries stored;
        uint32_t order; // of each()
    };

    // Each mark, also those without a name, after its parent; until the function returns false. Numbers them from 1 on
    // in `order`; the base has 0.
    template <class Function>
    void visit(Function &&function);
    node &at(uint32_t mark) { return *nodes_[mark]; }
    const node &at(uint32_t mark) const { return *nodes_[mark]; }
    // A mark of an earlier tree becomes current, in the order of visit(), with its entries but for their `before`. The
    // parent is 0, or a mark that was restored. Expected: TY_E_MEMORY, TY_E_EXISTS.
    ty_status restore(const node &fields, os::array<entry> &entries, uint32_t parent, uint32_t *made);
    uint32_t named(size_t n) const { return by_name_[n]; } // in the order of names, below count()
    ty_mark_info info_of(uint32_t mark) const;

    uint64_t session = 0; // of marks that are added

private:
    static bool is_named(const node &mark) { return mark.name[0] != '\0'; }

    size_t place_of(const char *name) const; // in by_name_
    ty_status make_node(uint32_t *made);
    void remove_node(uint32_t number);
    void unlink(uint32_t number);
    void leave_current();
    void step_up();                // the parent of the current mark is the current one
    void step_down(uint32_t mark); // a child of it is
    // Moves what the only child needs to it. Expected: TY_E_MEMORY.
    ty_status merge_into_child(uint32_t number);
    ty_status merge_entries(const node &from, node &into);
    void remove_leaf(uint32_t number);
    const char *named_parent(const node &of) const;

    os::array<node *> nodes_; // NULL: the number is not in use
    os::array<uint32_t> by_name_;
    os::array<uint32_t> unused_;
    void insert_name(uint32_t number);
    void link(uint32_t number, uint32_t parent);

    page_store *store_ = nullptr;
    page_slots newest_; // on the way from the base to the current mark
    uint32_t current_ = base;
};

// The marks of both, in the order of names; either may be NULL.
void each_mark(const mark_tree *memory, const mark_tree *durable, ty_mark_callback *callback, void *context);

template <class Function>
void mark_tree::visit(Function &&function) {
    uint32_t next = 0, at = base;
    nodes_[base]->order = next++;
    for (;;) {
        if (nodes_[at]->first_child != base) {
            at = nodes_[at]->first_child;
        } else {
            while (at != base && nodes_[at]->next == base)
                at = nodes_[at]->parent;
            if (at == base)
                return;
            at = nodes_[at]->next;
        }
        nodes_[at]->order = next++;
        if (!function(*nodes_[at]))
            return;
    }
}

} // namespace taiyen
