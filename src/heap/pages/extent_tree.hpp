// The index of free extents: a treap in the descriptors of their heads, in order (length, page), so that best fit,
// lowest first, is its lower bound. A node's priority is a hash of its page number: the tree's form depends on the set
// of free extents alone, not on history (H3).
//
// Nothing read is trusted: a child that is not the head of a free extent below the end, or a walk longer than in any
// sound tree, is damage.
#pragma once

#include "../tables/tables.hpp"

namespace taiyen {

class extent_tree {
public:
    static constexpr uint32_t none = 0;
    static constexpr uint32_t damaged = UINT32_MAX;
    // The probability that a sound tree of 2^32 nodes is deeper than this is negligible.
    static constexpr uint32_t depth_max = 1024;

    // end: pages at or beyond it are not nodes.
    extent_tree(page_descriptor *descriptors, uint32_t *root, uint64_t end)
        : descriptors_(descriptors), root_(root), end_(end) {}

    // The page's descriptor must be that of a free extent, with its length. False: damaged (then the tree may be
    // changed).
    bool insert(uint32_t page);
    bool remove(uint32_t page);
    // The first node at or after (length, page); none; or damaged.
    uint32_t lower_bound(uint32_t length, uint32_t page) const;
    // Calls back for every node in order until visit returns false. Returns false if the tree is damaged.
    bool each(bool (*visit)(uint32_t page, void *context), void *context) const;

    static uint32_t priority(uint32_t page);

private:
    bool node(uint32_t page) const {
        return page >= first_user_page && page < end_ && descriptors_[page].kind == page_free;
    }
    bool less(uint32_t a, uint32_t b) const {
        uint32_t la = descriptors_[a].length, lb = descriptors_[b].length;
        return la != lb ? la < lb : a < b;
    }
    bool merge(uint32_t left, uint32_t right, uint32_t *link);

    page_descriptor *descriptors_;
    uint32_t *root_;
    uint64_t end_;
};

} // namespace taiyen
