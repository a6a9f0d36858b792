#include "invert.hpp"

namespace draw {
namespace {

// It is stored in the history of drawings: it must never mean anything else.
constexpr uint64_t invert_id = 0x6472617700000001; // "draw", 1

struct invert_arguments {
    const layer *what; // a heap is always mapped where it was made, so a pointer is as good as a name
};

// Called for the edit itself, for its undo and for its redo: each time it records its own reversal: itself.
ty_status invert(ty_heap *heap, const void *bytes, size_t count, void *) {
    invert_arguments arguments{};
    if (count != sizeof arguments)
        return TY_E_ARGUMENT;
    std::memcpy(&arguments, bytes, count);
    ty_status status = ty_undo_record_procedure(heap, invert_id, bytes, count, TY_OK);
    if (status != TY_OK)
        return status;
    for (entity *item = arguments.what->first; item != nullptr; item = item->next)
        item->colour ^= 0xffffff;
    return TY_OK;
}

} // namespace

void register_procedures() {
    demo::check(ty_register_procedure(invert_id, "draw: invert a layer", invert, nullptr));
}

void invert_layer(edit &e, const layer *l) {
    invert_arguments arguments{l};
    demo::check(invert(e.heap(), &arguments, sizeof arguments, nullptr));
}

} // namespace draw
