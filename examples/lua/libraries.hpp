// The part of Lua's standard libraries for a state that outlives its process. Left out or changed is what would lead
// out of the heap, or would be something else in the next run:
//   - io: a file handle belongs to the process: io.write is there, the rest says why not
//   - os: exit and setlocale say why not
//   - debug: getregistry is missing, as the session keeps its own values there; so is debug.debug
//   - package: no C libraries: their code would have to be loaded before the heap is opened
//   - load, loadfile, dofile, require: accept no binary chunks: Lua does not check those, and damage would be kept
//   - C functions: are closures, which tables find by their place in the heap. Light functions are found by their
//     address, which is another one in the next run
#pragma once

#include <lua.hpp>

namespace lua {

// Opens them in a new state, and `save`, its argument. Called by lua_pcall; leaves the function that runs a chunk and
// prints its results.
int open_libraries(lua_State *L);

} // namespace lua
