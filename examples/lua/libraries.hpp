// What of Lua's standard libraries a state gets that outlives its process. Left out or changed is what would lead out
// of the heap, or would be something else in the next run:
//   io            a file handle is the process's: io.write is there, the rest says why not
//   os            exit and setlocale say why not
//   debug         getregistry is not there, where the session keeps what it needs; nor is debug
//   package       no libraries in C: their code would have to be loaded before the heap is opened
//   load, loadfile, dofile, require    take no binary chunks: Lua does not check those, and what they break would be
//   kept functions     those of C are closures, which are found in tables by their place in the heap. Light functions
//   are
//                 found by their address, which is another one in the next run
#pragma once

#include <lua.hpp>

namespace lua {

// Opens them in a new state, and `save`, its argument. Called by lua_pcall; leaves the function that runs a chunk and
// prints what that returns.
int open_libraries(lua_State *L);

} // namespace lua
