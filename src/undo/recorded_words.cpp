// The words that an undo or redo may put back, for a layer that must know what they point to.
#include "undo_runtime.hpp"

#include <algorithm>

namespace taiyen {
namespace {

constexpr uint64_t word_bytes = sizeof(uint64_t);

struct visiting {
    const undo &of;
    undo_word_visit *visit;
    void *context;
    bool stopped;

    // The word after some of its bytes are put back, over the current value of the others.
    void look_at_part(uint64_t word, uint64_t first, uint64_t last, const char *bytes) {
        uint64_t value = 0, known = 0;
        ty_block block;
        if (heap_find_block(of.heap, of.base + word, &block))
            memcpy(&value, of.base + word, word_bytes);
        memcpy(reinterpret_cast<char *>(&value) + first, bytes, last - first);
        memset(reinterpret_cast<char *>(&known) + first, 0xff, last - first);
        stopped = !visit(value, known, context);
    }
    void visit_bytes(const char *bytes) {
        uint64_t value;
        memcpy(&value, bytes, word_bytes);
        stopped = !visit(value, UINT64_MAX, context);
    }
    void look_at_data(const undo_ring &ring, const undo_entry &entry) {
        const uint64_t end = entry.address + entry.bytes;
        for (uint64_t word = entry.address & ~(word_bytes - 1); word < end && !stopped; word += word_bytes) {
            const uint64_t from = std::max(word, entry.address), to = std::min(word + word_bytes, end);
            char bytes[word_bytes];
            ring.copy_out((position_of(entry) + from - entry.address) % ring.payload_bytes, bytes, to - from);
            if (to - from == word_bytes)
                visit_bytes(bytes);
            else
                look_at_part(word, from - word, to - word, bytes);
        }
    }
    void look_at_arguments(const undo_ring &ring, const undo_entry &entry) {
        const char *arguments = ring.payload + position_of(entry) + sizeof(undo_call);
        for (uint64_t at = 0; at + word_bytes <= entry.bytes && !stopped; at += word_bytes)
            visit_bytes(arguments + at);
    }
    void look_at(const undo_ring &ring) {
        const undo_ring_positions &positions = *ring.positions;
        for (uint64_t position = positions.entries_begin; position < positions.entries_end && !stopped; ++position) {
            const undo_entry &entry = ring.at(position);
            if (kind_of(entry) == undo_kind::data)
                look_at_data(ring, entry);
            else if (kind_of(entry) == undo_kind::procedure)
                look_at_arguments(ring, entry);
        }
    }
};

} // namespace

ty_status undo_each_recorded_word(ty_heap *heap, undo_word_visit *visit, void *context) {
    if (image_kind(heap) == TY_TRANSACTIONAL) // it has no undo
        return TY_OK;
    undo *attached = undo_of(heap), *read = nullptr;
    if (!attached)
        if (ty_status status = read_detached(heap, &read))
            return status == TY_E_MEMORY ? status : TY_OK;
    undo *of = attached ? attached : read;
    // Volatile bytes end with the session, and none are left of an earlier one.
    if (of && (attached || !(of->control->flags & undo_volatile))) {
        visiting all{*of, visit, context, false};
        for (const undo_ring &ring : of->rings)
            all.look_at(ring);
    }
    if (read)
        undo_destroy(read);
    return TY_OK;
}

} // namespace taiyen
