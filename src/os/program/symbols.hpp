// The symbols of a loaded object, from its file.
#pragma once

#include "loaded_objects.hpp"

namespace taiyen::os {

// A function or an object (a variable, a constant, a virtual table) that the loaded object defines.
struct symbol {
    uint64_t value; // relative to the object's load
    uint64_t size;
    bool function;
    bool own;         // not visible to other objects by its name
    const char *name; // NULL: not a symbol, but the name of a source file of the object, in `file`
    const char *file; // the source file's last path component, for a local symbol; otherwise NULL
};

// The file's whole symbol table if it has one, otherwise the dynamic symbols. *is_its_file false, and no symbols: the
// file cannot be read, or is not the loaded one (it was replaced meanwhile). Expected: TY_E_MEMORY, and what visit
// returns, which ends the iteration.
ty_status each_symbol(const loaded_object &object, ty_status (*visit)(void *context, const symbol &found),
                      void *context, bool *is_its_file);

// The variable of an object at an offset: relative to the object's load, or, thread-local, to the start of the object's
// thread-local data. As the linker names it, cut to the room; "" if the file has no name there, or is not the loaded
// one. *within: offset in the variable.
void name_variable(const loaded_object &object, uint64_t offset, bool thread_local_data, char *name, size_t room,
                   uint64_t *within);

// The address that dlsym returns for a name in the global scope; NULL: none.
const void *find_for_all(const char *name);

// In notes of a file or in memory.
bool find_build_id(const uint8_t *notes, size_t bytes, const uint8_t **id, uint32_t *id_bytes);

} // namespace taiyen::os
