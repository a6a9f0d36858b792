// The drawing: layers of entities, found by id and by position. Plain structs with raw pointers, in one heap, found
// again there under the root "drawing". Nothing here knows of files, and of undo only that changes are edits.
#pragma once

#include "edit.hpp"
#include "geometry.hpp"
#include "rtree.hpp"
#include <string>
#include <string_view>
#include <taiyen/taiyen.h>
#include <vector>

namespace draw {

struct layer;

// A sequence of points.
struct part {
    point *points;
    uint64_t count;
};

// An area with holes, or a line. An area's parts are its rings, each closed by itself; a line has one part.
struct entity {
    layer *home;
    entity *previous; // in the layer; the first is painted first
    entity *next;
    char *name;
    part *parts;
    uint32_t part_count;
    uint32_t id;
    uint32_t colour; // 0xrrggbb
    uint32_t is_area;
    box bounds;
};

struct layer {
    layer *next; // the first is painted first
    char *name;
    entity *first;
    entity *last;
    uint64_t entity_count;
    uint64_t visible;
};

struct drawing {
    layer *first_layer;
    layer *last_layer;
    tree index;      // of all entities
    entity **by_id;  // NULL: no entity has that id; the id 0 is not used
    uint32_t slots;  // of by_id
    uint32_t new_id; // of the next entity; all ids are below
    uint64_t entity_count;
};

// What an entity is made from.
struct shape {
    std::string name;
    uint32_t colour = 0;
    bool is_area = false;
    std::vector<std::vector<point>> parts;
};

// The drawing of a heap; made when the heap is empty.
drawing *drawing_of(ty_heap *heap);

layer *find_layer(const drawing *d, std::string_view name);   // NULL if there is none
entity *find_entity(const drawing *d, uint64_t id);           // NULL if there is none
layer *add_layer(edit &e, drawing *d, std::string_view name); // on top
void set_visible(edit &e, layer *l, bool visible);

entity *add_entity(edit &e, drawing *d, layer *home, const shape &from);
void remove_entity(edit &e, drawing *d, entity *item);
void put_into(edit &e, entity *item, layer *home);
void recolour(edit &e, entity *item, uint32_t colour);
void transform(edit &e, drawing *d, entity *item, const affine &how);
// Returns how many points were removed.
uint64_t simplify(edit &e, drawing *d, entity *item, double tolerance);
// Appends the second line to the first, nearest end to nearest end, and removes it.
void join_lines(edit &e, drawing *d, entity *first, entity *second);

uint64_t points_of(const entity *item);

} // namespace draw
