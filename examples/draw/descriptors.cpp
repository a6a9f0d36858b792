#include "descriptors.hpp"

#include "drawing.hpp"

namespace draw {

TY_TYPE_DECLARE(entity);
TY_TYPE_DECLARE(layer);

TY_TYPE_POINTER_TO(entity_pointer, &entity_descriptor)

TY_TYPE(part, TY_BYTES(part, points))

TY_TYPE(entity, TY_POINTER(entity, home, &layer_descriptor), TY_POINTER(entity, previous, &entity_descriptor),
        TY_POINTER(entity, next, &entity_descriptor), TY_BYTES(entity, name),
        TY_POINTER_COUNTED(entity, parts, part_count, &part_descriptor))

TY_TYPE(layer, TY_POINTER(layer, next, &layer_descriptor), TY_BYTES(layer, name),
        TY_POINTER(layer, first, &entity_descriptor), TY_REFERENCE(layer, last))

void trace_slots(ty_tracer *tracer, void *node, void *) {
    auto *in = static_cast<tree_node *>(node);
    for (uint32_t i = 0; i < std::min(in->count, tree_slots); ++i)
        ty_trace_pointer(tracer, &in->slots[i].node, in->height > 0 ? &tree_node_descriptor : &entity_descriptor, 1, 0);
}

const ty_type tree_node_descriptor = {"tree_node", sizeof(tree_node), nullptr, 0, trace_slots, nullptr, nullptr};

TY_TYPE(tree, TY_POINTER(tree, root, &tree_node_descriptor))

TY_TYPE(drawing, TY_POINTER(drawing, first_layer, &layer_descriptor), TY_REFERENCE(drawing, last_layer),
        TY_NESTED(drawing, index, &tree_descriptor),
        TY_POINTER_COUNTED(drawing, by_id, slots, &entity_pointer_descriptor))

} // namespace draw
