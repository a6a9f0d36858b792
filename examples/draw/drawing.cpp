#include "drawing.hpp"

namespace draw {

using demo::failure;

namespace {

constexpr const char *root_name = "drawing";

void link(edit &e, entity *item, layer *home) {
    layer *l = e.change(home);
    item->home = l;
    item->previous = l->last;
    item->next = nullptr;
    (l->last == nullptr ? l->first : e.change(l->last)->next) = item;
    l->last = item;
    ++l->entity_count;
}

void unlink(edit &e, const entity *item) {
    layer *l = e.change(item->home);
    (item->previous == nullptr ? l->first : e.change(item->previous)->next) = item->next;
    (item->next == nullptr ? l->last : e.change(item->next)->previous) = item->previous;
    --l->entity_count;
}

// Throws if something is too far away to be a picture, or not a number.
box bounds_of(const entity *item) {
    constexpr double far = 1e6;
    constexpr box world{-far, -far, far, far};
    box all;
    for (uint32_t i = 0; i < item->part_count; ++i) {
        for (uint64_t k = 0; k < item->parts[i].count; ++k) {
            point at = item->parts[i].points[k];
            if (!world.contains(box{at.x, at.y, at.x, at.y}))
                throw failure("that would put a point more than a million degrees away");
            all.add(at);
        }
    }
    return all;
}

// After an entity's points have changed.
void place_anew(edit &e, drawing *d, entity *item) {
    box bounds = bounds_of(item);
    if (bounds == item->bounds)
        return;
    tree_remove(e, &d->index, item->bounds, item);
    e.change(item)->bounds = bounds;
    tree_insert(e, &d->index, bounds, item);
}

uint32_t take_id(edit &e, drawing *d) {
    e.change(d);
    if (d->new_id == d->slots) {
        uint32_t slots = d->slots * 2;
        d->by_id = e.resize(d->by_id, slots);
        std::fill(e.change(d->by_id + d->slots, slots - d->slots), d->by_id + slots, nullptr);
        d->slots = slots;
    }
    return d->new_id++;
}

drawing *make_drawing(ty_heap *heap) {
    constexpr uint32_t first_slots = 64;
    auto *d = demo::make<drawing>(heap);
    d->by_id = demo::make<entity *>(heap, first_slots);
    d->slots = first_slots;
    d->new_id = 1;
    demo::check(ty_root_set(heap, root_name, d));
    return d;
}

double distance_square(point a, point b) {
    return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}

} // namespace

drawing *drawing_of(ty_heap *heap) {
    if (auto *d = static_cast<drawing *>(ty_root(heap, root_name)))
        return d;
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    demo::check(ty_heap_get_stats(heap, &stats));
    if (stats.live_blocks > 0)
        throw failure("the heap holds something else than a drawing");
    return make_drawing(heap);
}

layer *find_layer(const drawing *d, std::string_view name) {
    layer *l = d->first_layer;
    while (l != nullptr && demo::view(l->name) != name)
        l = l->next;
    return l;
}

entity *find_entity(const drawing *d, uint64_t id) {
    return id < d->new_id ? d->by_id[id] : nullptr;
}

layer *add_layer(edit &e, drawing *d, std::string_view name) {
    auto *l = e.make<layer>();
    l->name = e.copy_text(name);
    l->visible = 1;
    e.change(d);
    (d->last_layer == nullptr ? d->first_layer : e.change(d->last_layer)->next) = l;
    d->last_layer = l;
    return l;
}

void set_visible(edit &e, layer *l, bool visible) {
    e.change(l)->visible = visible;
}

entity *add_entity(edit &e, drawing *d, layer *home, const shape &from) {
    auto *item = e.make<entity>();
    item->name = e.copy_text(from.name);
    item->colour = from.colour;
    item->is_area = from.is_area;
    item->part_count = static_cast<uint32_t>(from.parts.size());
    item->parts = e.make<part>(from.parts.size());
    for (size_t i = 0; i < from.parts.size(); ++i) {
        const std::vector<point> &points = from.parts[i];
        item->parts[i] = {e.make<point>(points.size()), points.size()};
        std::copy(points.begin(), points.end(), item->parts[i].points);
    }
    item->bounds = bounds_of(item);
    item->id = take_id(e, d);
    *e.change(&d->by_id[item->id]) = item;
    link(e, item, home);
    tree_insert(e, &d->index, item->bounds, item);
    ++e.change(d)->entity_count;
    return item;
}

void remove_entity(edit &e, drawing *d, entity *item) {
    tree_remove(e, &d->index, item->bounds, item);
    unlink(e, item);
    *e.change(&d->by_id[item->id]) = nullptr;
    --e.change(d)->entity_count;
    for (uint32_t i = 0; i < item->part_count; ++i)
        e.release(item->parts[i].points);
    e.release(item->parts);
    e.release(item->name);
    e.release(item);
}

void put_into(edit &e, entity *item, layer *home) {
    unlink(e, item);
    link(e, e.change(item), home);
}

void recolour(edit &e, entity *item, uint32_t colour) {
    e.change(item)->colour = colour;
}

void transform(edit &e, drawing *d, entity *item, const affine &how) {
    for (uint32_t i = 0; i < item->part_count; ++i) {
        const part &p = item->parts[i];
        point *points = e.change(p.points, p.count);
        std::transform(points, points + p.count, points, how);
    }
    place_anew(e, d, item);
}

uint64_t simplify(edit &e, drawing *d, entity *item, double tolerance) {
    uint64_t gone = 0;
    for (uint32_t i = 0; i < item->part_count; ++i) {
        const part &old = item->parts[i];
        std::vector<bool> keep =
            simplified(old.points, static_cast<uint32_t>(old.count), item->is_area != 0, tolerance);
        auto kept = static_cast<uint64_t>(std::count(keep.begin(), keep.end(), true));
        if (kept == old.count)
            continue;
        gone += old.count - kept;
        point *to = e.change(old.points, old.count);
        for (uint64_t k = 0; k < keep.size(); ++k)
            if (keep[k])
                *to++ = old.points[k];
        *e.change(&item->parts[i]) = {e.resize(old.points, kept), kept};
    }
    if (gone > 0)
        place_anew(e, d, item);
    return gone;
}

void join_lines(edit &e, drawing *d, entity *first, entity *second) {
    const part &a = first->parts[0];
    const part &b = second->parts[0];
    std::vector<point> row(a.points, a.points + a.count);
    std::vector<point> more(b.points, b.points + b.count);
    auto nearest = [](const std::vector<point> &ends, point p) {
        return std::min(distance_square(ends.front(), p), distance_square(ends.back(), p));
    };
    if (nearest(more, row.front()) < nearest(more, row.back()))
        std::reverse(row.begin(), row.end());
    if (distance_square(more.back(), row.back()) < distance_square(more.front(), row.back()))
        std::reverse(more.begin(), more.end());
    row.insert(row.end(), more.front() == row.back() ? more.begin() + 1 : more.begin(), more.end());

    remove_entity(e, d, second);
    part *joined = e.change(first->parts);
    e.change(joined->points, joined->count);
    *joined = {e.resize(joined->points, row.size()), row.size()};
    std::copy(row.begin(), row.end(), e.change(joined->points, joined->count));
    place_anew(e, d, first);
}

uint64_t points_of(const entity *item) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < item->part_count; ++i)
        count += item->parts[i].count;
    return count;
}

} // namespace draw
