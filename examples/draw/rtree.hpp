// Positions of things: an R-tree of raw pointers. Its nodes are blocks of the heap, changed through edits like all
// else, so undo restores the index together with what it points to.
#pragma once

#include "edit.hpp"
#include "geometry.hpp"
#include <string>

namespace draw {

struct entity;

constexpr uint32_t tree_slots = 16;

struct tree_node {
    struct slot {
        box bounds; // of all below
        union {
            tree_node *node; // if height > 0
            entity *item;    // in leaves
        };
    };
    uint32_t height; // 0: a leaf
    uint32_t count;  // at least 1
    slot slots[tree_slots];
};

struct tree {
    tree_node *root; // NULL: empty
};

void tree_insert(edit &e, tree *t, const box &bounds, entity *item);
// `bounds` as inserted. Throws if the item is not there. Nodes are freed when they are empty, and not merged before.
void tree_remove(edit &e, tree *t, const box &bounds, const entity *item);

// All items whose box overlaps this one, in no particular order.
std::vector<entity *> tree_search(const tree *t, const box &area);

// The box of all slots.
box bounds_of(const tree_node *node);

} // namespace draw
