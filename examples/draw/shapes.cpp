#include "shapes.hpp"

#include "drawing.hpp"

namespace draw {

TY_SHAPE_DECLARE(entity);
TY_SHAPE_DECLARE(layer);

TY_SHAPE_POINTER_TO(entity_pointer, &entity_shape)

TY_SHAPE(part, TY_BYTES(part, points))

TY_SHAPE(entity, TY_POINTER(entity, home, &layer_shape), TY_POINTER(entity, previous, &entity_shape),
         TY_POINTER(entity, next, &entity_shape), TY_BYTES(entity, name),
         TY_POINTER_COUNTED(entity, parts, part_count, &part_shape))

TY_SHAPE(layer, TY_POINTER(layer, next, &layer_shape), TY_BYTES(layer, name), TY_POINTER(layer, first, &entity_shape),
         TY_REFERENCE(layer, last))

void trace_slots(ty_tracer *tracer, void *node, void *) {
    auto *in = static_cast<tree_node *>(node);
    for (uint32_t i = 0; i < std::min(in->count, tree_slots); ++i)
        ty_trace_pointer(tracer, &in->slots[i].node, in->height > 0 ? &tree_node_shape : &entity_shape, 1, 0);
}

const ty_shape tree_node_shape = {"tree_node", sizeof(tree_node), nullptr, 0, trace_slots, nullptr, nullptr};

TY_SHAPE(tree, TY_POINTER(tree, root, &tree_node_shape))

TY_SHAPE(drawing, TY_POINTER(drawing, first_layer, &layer_shape), TY_REFERENCE(drawing, last_layer),
         TY_NESTED(drawing, index, &tree_shape), TY_POINTER_COUNTED(drawing, by_id, slots, &entity_pointer_shape))

} // namespace draw
