#include "rtree.hpp"

namespace draw {
namespace {

using slot = tree_node::slot;

double area_of(const box &b) {
    return (b.high_x - b.low_x) * (b.high_y - b.low_y);
}

box united(box a, const box &b) {
    a.add(b);
    return a;
}

slot slot_of(tree_node *node) {
    slot s;
    s.bounds = bounds_of(node);
    s.node = node;
    return s;
}

// Slots after the count lead nowhere: so a check can show that no pointer is forgotten (draw/descriptors.hpp).
void clear_slots(tree_node *node) {
    for (uint32_t i = node->count; i < tree_slots; ++i)
        node->slots[i].node = nullptr;
}

// Adds a slot; a full node is split, along the axis in which its slots' centres are spread wider, and the other half
// returned.
tree_node *add_slot(edit &e, tree_node *node, const slot &added) {
    node = e.change(node);
    if (node->count < tree_slots) {
        node->slots[node->count++] = added;
        return nullptr;
    }
    std::vector<slot> all(node->slots, node->slots + tree_slots);
    all.push_back(added);
    box middles;
    for (const slot &s : all)
        middles.add(s.bounds.middle());
    bool along_x = middles.high_x - middles.low_x > middles.high_y - middles.low_y;
    std::stable_sort(all.begin(), all.end(), [along_x](const slot &a, const slot &b) {
        return along_x ? a.bounds.middle().x < b.bounds.middle().x : a.bounds.middle().y < b.bounds.middle().y;
    });
    auto *sibling = e.make<tree_node>();
    sibling->height = node->height;
    auto half = static_cast<uint32_t>(all.size() / 2);
    node->count = half;
    sibling->count = static_cast<uint32_t>(all.size()) - half;
    std::copy(all.begin(), all.begin() + half, node->slots);
    clear_slots(node);
    std::copy(all.begin() + half, all.end(), sibling->slots);
    return sibling;
}

// The slot whose box grows least; of equals, the smaller one.
uint32_t best_slot(const tree_node *node, const box &bounds) {
    uint32_t best = 0;
    double best_growth = 0;
    for (uint32_t i = 0; i < node->count; ++i) {
        double area = area_of(node->slots[i].bounds);
        double growth = area_of(united(node->slots[i].bounds, bounds)) - area;
        if (i == 0 || growth < best_growth || (growth == best_growth && area < area_of(node->slots[best].bounds))) {
            best = i;
            best_growth = growth;
        }
    }
    return best;
}

// Returns the new other half, if the node was split.
tree_node *insert_below(edit &e, tree_node *node, const slot &added) {
    if (node->height == 0)
        return add_slot(e, node, added);
    uint32_t at = best_slot(node, added.bounds);
    tree_node *sibling = insert_below(e, node->slots[at].node, added);
    box bounds = bounds_of(node->slots[at].node);
    if (bounds != node->slots[at].bounds)
        e.change(node)->slots[at].bounds = bounds;
    return sibling == nullptr ? nullptr : add_slot(e, node, slot_of(sibling));
}

void remove_slot(edit &e, tree_node *node, uint32_t at) {
    node = e.change(node);
    node->slots[at] = node->slots[--node->count];
    clear_slots(node);
}

bool remove_below(edit &e, tree_node *node, const box &bounds, const entity *item) {
    for (uint32_t i = 0; i < node->count; ++i) {
        if (!node->slots[i].bounds.contains(bounds))
            continue;
        if (node->height == 0) {
            if (node->slots[i].item != item)
                continue;
            remove_slot(e, node, i);
            return true;
        }
        tree_node *child = node->slots[i].node;
        if (!remove_below(e, child, bounds, item))
            continue;
        if (child->count == 0) {
            remove_slot(e, node, i);
            e.release(child);
        } else if (box left = bounds_of(child); left != node->slots[i].bounds) {
            e.change(node)->slots[i].bounds = left;
        }
        return true;
    }
    return false;
}

void search_below(const tree_node *node, const box &area, std::vector<entity *> &found) {
    for (uint32_t i = 0; i < node->count; ++i) {
        if (!node->slots[i].bounds.overlaps(area))
            continue;
        if (node->height == 0)
            found.push_back(node->slots[i].item);
        else
            search_below(node->slots[i].node, area, found);
    }
}

} // namespace

box bounds_of(const tree_node *node) {
    box all;
    for (uint32_t i = 0; i < node->count; ++i)
        all.add(node->slots[i].bounds);
    return all;
}

void tree_insert(edit &e, tree *t, const box &bounds, entity *item) {
    slot added;
    added.bounds = bounds;
    added.item = item;
    if (t->root == nullptr)
        e.change(t)->root = e.make<tree_node>();
    tree_node *sibling = insert_below(e, t->root, added);
    if (sibling == nullptr)
        return;
    auto *root = e.make<tree_node>();
    root->height = sibling->height + 1;
    root->count = 2;
    root->slots[0] = slot_of(t->root);
    root->slots[1] = slot_of(sibling);
    e.change(t)->root = root;
}

void tree_remove(edit &e, tree *t, const box &bounds, const entity *item) {
    if (t->root == nullptr || !remove_below(e, t->root, bounds, item))
        throw demo::failure("the spatial index does not know an entity of the drawing: it is damaged");
    while (t->root != nullptr && (t->root->count == 0 || (t->root->height > 0 && t->root->count == 1))) {
        tree_node *old = t->root;
        e.change(t)->root = old->count == 0 ? nullptr : old->slots[0].node;
        e.release(old);
    }
}

std::vector<entity *> tree_search(const tree *t, const box &area) {
    std::vector<entity *> found;
    if (t->root != nullptr)
        search_below(t->root, area, found);
    return found;
}

} // namespace draw
