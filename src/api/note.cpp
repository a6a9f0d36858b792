// The functions of note.h.
#include "arguments.hpp"
#include "src/store/image/image.hpp"

#include <cstdlib>
#include <new>
#include <taiyen/note.h>

using namespace taiyen;

struct ty_notes {
    const char *path; // allocated behind the struct
    ty_open_options options;
    image_note_slots slots;
};

namespace {

static_assert(TY_NOTES == image_notes && TY_NOTE_BYTES_MAX == image_note_bytes_max);

ty_status check_note(const ty_notes *notes, uint32_t note, const void *bytes, const char *call) {
    if (ty_status status = check_pointer(notes, call, "the notes"))
        return status;
    if (ty_status status = check_pointer(bytes, call, "the place of its bytes"))
        return status;
    return note < TY_NOTES ? TY_OK : failure(TY_E_ARGUMENT, "%s: there is none of number %u", call, note);
}

} // namespace

ty_status ty_notes_open(const char *heap_path, const ty_open_options *open, ty_notes **notes) {
    constexpr const char *call = "use the notes of a heap";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    char *resolved = nullptr;
    if (ty_status status = check_path(heap_path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(notes, call, "the place for the notes"))
        return status;
    *notes = nullptr;
    if (ty_status status = take_open_options(open, call, &used))
        return status;
    if (ty_status status = resolve_path(*used.storage, heap_path, &resolved))
        return status;
    const size_t length = strlen(resolved) + 1;
    void *memory = os::own_calloc(1, sizeof(ty_notes) + length);
    if (memory) {
        char *copy = static_cast<char *>(memory) + sizeof(ty_notes);
        memcpy(copy, resolved, length);
        *notes = new (memory) ty_notes{copy, used, {}};
    }
    free(resolved);
    return memory ? TY_OK : failure(TY_E_MEMORY, "%s", call).at(heap_path).remedy("free memory of the process");
}

void ty_notes_close(ty_notes *notes) {
    if (notes)
        notes->slots.image.close();
    free(notes);
}

ty_status ty_notes_read(ty_notes *notes, uint32_t note, void *bytes, size_t capacity, size_t *size_bytes) {
    constexpr const char *call = "read a note of a heap";
    if (ty_status status = check_note(notes, note, bytes, call))
        return status;
    if (ty_status status = check_pointer(size_bytes, call, "the place for its size"))
        return status;
    return image_note_read(notes->path, *notes->options.storage, notes->slots, note, bytes, capacity, size_bytes);
}

ty_status ty_notes_write(ty_notes *notes, uint32_t note, const void *bytes, size_t size_bytes, bool durable) {
    constexpr const char *call = "write a note of a heap";
    if (ty_status status = check_note(notes, note, bytes, call))
        return status;
    if (size_bytes == 0 || size_bytes > TY_NOTE_BYTES_MAX)
        return failure(TY_E_ARGUMENT, "%s of %zu bytes", call, size_bytes).remedy("give 1 to %u", TY_NOTE_BYTES_MAX);
    return image_note_write(notes->path, *notes->options.storage, notes->slots, note, bytes, size_bytes, durable);
}
