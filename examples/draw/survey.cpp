#include "survey.hpp"
#include <unordered_set>
#include <xxhash.h>

namespace draw {
namespace {

class hasher {
public:
    hasher() { XXH3_128bits_reset(&state_); }
    void add(const void *bytes, size_t count) { XXH3_128bits_update(&state_, bytes, count); }
    void add(uint64_t number) { add(&number, sizeof number); }
    void add(std::string_view text) {
        add(text.size());
        add(text.data(), text.size());
    }
    fingerprint value() const {
        XXH128_hash_t digest = XXH3_128bits_digest(&state_);
        return {digest.low64, digest.high64};
    }

private:
    XXH3_state_t state_;
};

class surveyor {
public:
    explicit surveyor(const drawing *d) : drawing_(d), heap_(ty_heap_of(d)) {}

    survey run() {
        if (owns(drawing_) && owns(drawing_->by_id, drawing_->slots) &&
            expect(drawing_->new_id <= drawing_->slots, "there are more ids than slots for them")) {
            walk_layers();
            if (sound() && drawing_->index.root != nullptr)
                walk_tree(drawing_->index.root, drawing_->index.root->height);
        }
        expect(result_.entities == drawing_->entity_count, "there are not as many entities as the drawing counts");
        expect(indexed_.size() == result_.entities, "there are not as many entities in the spatial index");
        result_.content = content_.value();
        result_.memory = memory_.value();
        return result_;
    }

private:
    bool sound() const { return result_.problem.empty(); }

    bool expect(bool holds, const char *problem, const entity *who = nullptr) {
        if (!holds && sound())
            result_.problem = who == nullptr ? problem : "entity " + std::to_string(who->id) + problem;
        return sound();
    }

    // Records a block; false if the pointer to it is not one to a block of the heap that is large enough.
    template <class T>
    bool owns(const T *block, size_t count = 1) {
        size_t bytes = count * sizeof(T);
        if (!expect(block != nullptr && ty_heap_of(block) == heap_ && ty_usable_size(block) >= bytes,
                    "a pointer does not lead to a block of the heap"))
            return false;
        ++result_.blocks;
        result_.bytes += bytes;
        memory_.add(reinterpret_cast<uintptr_t>(block));
        memory_.add(block, bytes);
        return true;
    }

    void take_text(const char *text) {
        if (text == nullptr)
            return content_.add(uint64_t{0});
        size_t room = ty_heap_of(text) == heap_ ? ty_usable_size(text) : 0;
        if (owns(text, strnlen(text, room) + 1))
            content_.add(demo::view(text));
    }

    void walk_layers() {
        const layer *last = nullptr;
        for (const layer *l = drawing_->first_layer; l != nullptr && sound(); l = l->next) {
            if (!owns(l))
                return;
            last = l;
            ++result_.layers;
            take_text(l->name);
            content_.add(l->visible);
            content_.add(l->entity_count);
            walk_entities(l);
        }
        expect(last == drawing_->last_layer, "the last layer is not the last one");
    }

    void walk_entities(const layer *l) {
        uint64_t count = 0;
        const entity *previous = nullptr;
        for (const entity *item = l->first; item != nullptr && sound(); item = item->next) {
            if (!owns(item))
                return;
            expect(item->home == l && item->previous == previous, " is not linked with its layer", item);
            expect(item->id > 0 && find_entity(drawing_, item->id) == item, " is not found by its id", item);
            expect(++count <= l->entity_count, "a layer has no end");
            take_entity(item);
            previous = item;
        }
        expect(count == l->entity_count && previous == l->last, "a layer's entities are not those that it counts");
        result_.entities += count;
    }

    void take_entity(const entity *item) {
        content_.add(item->id);
        content_.add(item->colour);
        content_.add(item->is_area);
        take_text(item->name);
        if (!expect(item->part_count > 0 && (item->is_area != 0 || item->part_count == 1), " has no points", item) ||
            !owns(item->parts, item->part_count))
            return;
        box bounds;
        for (uint32_t i = 0; i < item->part_count; ++i) {
            const part &p = item->parts[i];
            if (!expect(p.count >= (item->is_area != 0 ? 3 : 2), " has too few points", item) ||
                !owns(p.points, p.count))
                return;
            result_.points += p.count;
            content_.add(p.count);
            content_.add(p.points, p.count * sizeof(point));
            std::for_each(p.points, p.points + p.count, [&](point at) { bounds.add(at); });
        }
        expect(bounds == item->bounds, " is not where its box says", item);
    }

    void walk_tree(const tree_node *node, uint32_t height) {
        if (!owns(node) || !expect(node->height == height, "the spatial index is not of one height") ||
            !expect(node->count > 0 && node->count <= tree_slots, "a node of the spatial index is empty"))
            return;
        for (uint32_t i = 0; i < node->count && sound(); ++i) {
            const tree_node::slot &s = node->slots[i];
            if (height == 0) {
                if (!expect(ty_heap_of(s.item) == heap_, "the spatial index leads out of the heap"))
                    return;
                expect(find_entity(drawing_, s.item->id) == s.item, "the spatial index knows an entity that is gone");
                expect(s.bounds == s.item->bounds, "the spatial index has a wrong box");
                expect(indexed_.insert(s.item).second, "the spatial index has an entity twice");
            } else {
                walk_tree(s.node, height - 1);
                expect(s.bounds == bounds_of(s.node), "a box of the spatial index is not that of what is in it");
            }
        }
    }

    const drawing *drawing_;
    ty_heap *heap_;
    hasher content_;
    hasher memory_;
    std::unordered_set<const entity *> indexed_;
    survey result_;
};

} // namespace

std::string text_of(const fingerprint &f) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(f.high),
                  static_cast<unsigned long long>(f.low));
    return text;
}

survey survey_drawing(const drawing *d) {
    return surveyor(d).run();
}

} // namespace draw
