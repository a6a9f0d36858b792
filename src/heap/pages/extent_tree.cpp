#include "extent_tree.hpp"

namespace taiyen {

// A bijection, so that no two pages have the same priority.
uint32_t extent_tree::priority(uint32_t page) {
    uint32_t hash = page * 0x9e3779b1u;
    hash ^= hash >> 16;
    hash *= 0x85ebca6bu;
    hash ^= hash >> 13;
    hash *= 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

// H3: the tree holds exactly the free extents; its form depends on the set alone.
bool extent_tree::insert(uint32_t page) {
    uint32_t *link = root_;
    uint32_t depth = 0;
    while (*link != none) {
        if (!node(*link) || ++depth > depth_max)
            return false;
        if (priority(*link) < priority(page))
            break;
        const bool left = fault("free_runs_ordered_by_length_alone")
                              ? descriptors_[page].length <= descriptors_[*link].length
                              : less(page, *link);
        link = left ? &descriptors_[*link].left : &descriptors_[*link].right;
    }
    // The new node takes this place; the subtree below it is split into what is before and what is after it.
    uint32_t rest = *link;
    *link = page;
    uint32_t *before = &descriptors_[page].left;
    uint32_t *after = &descriptors_[page].right;
    while (rest != none) {
        if (!node(rest) || ++depth > depth_max)
            break;
        if (less(rest, page)) {
            *before = rest;
            before = &descriptors_[rest].right;
            rest = *before;
        } else {
            *after = rest;
            after = &descriptors_[rest].left;
            rest = *after;
        }
    }
    *before = none;
    *after = none;
    return rest == none;
}

bool extent_tree::remove(uint32_t page) {
    uint32_t *link = root_;
    for (uint32_t depth = 0; *link != page; depth++) {
        if (!node(*link) || depth > depth_max)
            return false;
        link = less(page, *link) ? &descriptors_[*link].left : &descriptors_[*link].right;
    }
    if (!node(page))
        return false;
    uint32_t left = descriptors_[page].left;
    uint32_t right = descriptors_[page].right;
    descriptors_[page].left = none;
    descriptors_[page].right = none;
    return merge(left, right, link);
}

// Merges two trees, all of left before all of right, at *link.
bool extent_tree::merge(uint32_t left, uint32_t right, uint32_t *link) {
    uint32_t depth = 0;
    while (left != none && right != none) {
        if (!node(left) || !node(right) || ++depth > depth_max) {
            *link = none;
            return false;
        }
        if (priority(left) > priority(right)) {
            *link = left;
            link = &descriptors_[left].right;
            left = *link;
        } else {
            *link = right;
            link = &descriptors_[right].left;
            right = *link;
        }
    }
    *link = left != none ? left : right;
    return true;
}

uint32_t extent_tree::lower_bound(uint32_t length, uint32_t page) const {
    uint32_t best = none;
    uint32_t at = *root_;
    for (uint32_t depth = 0; at != none; depth++) {
        if (!node(at) || depth > depth_max)
            return damaged;
        uint32_t at_length = descriptors_[at].length;
        if (at_length > length || (at_length == length && at >= page)) {
            best = at;
            at = descriptors_[at].left;
        } else {
            at = descriptors_[at].right;
        }
    }
    return best;
}

bool extent_tree::each(bool (*visit)(uint32_t, void *), void *context) const {
    uint32_t path[depth_max];
    uint32_t depth = 0;
    uint64_t visited = 0;
    uint32_t at = *root_;
    while (at != none || depth != 0) {
        for (; at != none; at = descriptors_[at].left) {
            if (!node(at) || depth == depth_max)
                return false;
            path[depth++] = at;
        }
        at = path[--depth];
        if (++visited > end_) // a node that is met twice
            return false;
        if (!visit(at, context))
            return true;
        at = descriptors_[at].right;
    }
    return true;
}

} // namespace taiyen
