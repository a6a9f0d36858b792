// The symbols of an object that is loaded, from its file.
#pragma once

#include "loaded_objects.hpp"

namespace taiyen::os {

// A function or an object (a variable, a constant, a table of virtual functions) that the object defines.
struct symbol {
    uint64_t value; // its address is this and what the object's load says
    uint64_t size;
    bool function;
    bool own;         // no other object reaches it by its name
    const char *name; // NULL: this is no symbol, and the object has a source file of that last part
    const char *file; // of one that is known in one source file alone: that file's last part, else NULL
};

// The file's whole table where it has one, else those that the dynamic linker knows. *is_its_file false, and there are
// none: the file cannot be read, or is not the one that is loaded (it was replaced meanwhile). Expected: TY_E_MEMORY,
// and what the visit returns, which ends it.
ty_status each_symbol(const loaded_object &object, ty_status (*visit)(void *context, const symbol &found),
                      void *context, bool *is_its_file);

// The variable of an object that covers an offset: less the object's load, or, thread-local, from the begin of the
// object's thread-local data. As the linker names it, cut to the room; "" where the file has no name there, or is not
// the one that is loaded. *within: from the variable's begin.
void name_variable(const loaded_object &object, uint64_t offset, bool thread_local_data, char *name, size_t room,
                   uint64_t *within);

// What the dynamic linker gives for a name to objects that see all others (dlsym); NULL: nothing.
const void *find_for_all(const char *name);

// Within notes of a file or in memory.
bool find_build_id(const uint8_t *notes, size_t bytes, const uint8_t **id, uint32_t *id_bytes);

} // namespace taiyen::os
