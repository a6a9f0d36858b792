#include "libraries.hpp"
#include <cstdio>
#include <cstring>

namespace lua {
namespace {

// ---- C functions as closures.

bool is_light(lua_State *L, int at) {
    if (!lua_iscfunction(L, at))
        return false;
    if (lua_getupvalue(L, at, 1) == nullptr)
        return true;
    lua_pop(L, 1);
    return false;
}

// Replaces the light function on top by a closure without upvalues.
void make_closure(lua_State *L) {
    lua_CFunction function = lua_tocfunction(L, -1);
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_pushcclosure(L, function, 1);
}

// For the light functions of the table on top.
void make_closures(lua_State *L) {
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        if (!is_light(L, -1))
            continue;
        make_closure(L);
        lua_pushvalue(L, -2); // the key; assigning to an existing field does not disturb lua_next
        lua_pushvalue(L, -2);
        lua_rawset(L, -5);
    }
}

// Upvalues: a function that returns an iterator, and closures of the light iterators that it may return.
int iterate(lua_State *L) {
    const int results = lua_tocfunction(L, lua_upvalueindex(1))(L);
    if (results == 0 || !is_light(L, -results))
        return results;
    for (int i = 2; i <= 3; ++i)
        if (lua_tocfunction(L, lua_upvalueindex(i)) == lua_tocfunction(L, -results)) {
            lua_pushvalue(L, lua_upvalueindex(i));
            lua_replace(L, -results - 1);
            break;
        }
    return results;
}

// The iterator that the function at the index returns for the arguments on top, as a closure in their place.
void push_iterator(lua_State *L, int function, int arguments) {
    lua_pushvalue(L, function);
    lua_insert(L, -arguments - 1);
    lua_call(L, arguments, 1);
    make_closure(L);
}

// From now on, a function of the table on top returns closures.
void wrap_iterating(lua_State *L, const char *name) {
    lua_getfield(L, -1, name);
    const int function = lua_gettop(L);
    lua_pushcfunction(L, lua_tocfunction(L, function));
    if (std::strcmp(name, "codes") == 0) {
        lua_pushliteral(L, "");
        push_iterator(L, function, 1);
        lua_pushliteral(L, "");
        lua_pushboolean(L, 1);
        push_iterator(L, function, 2);
    } else if (std::strcmp(name, "pairs") == 0) {
        lua_getglobal(L, "next"); // it is one already
        lua_pushnil(L);
    } else {
        lua_newtable(L);
        push_iterator(L, function, 1);
        lua_pushnil(L);
    }
    lua_pushcclosure(L, iterate, 3);
    lua_setfield(L, -3, name);
    lua_pop(L, 1);
}

// ---- Replacements of functions that are left out.

int write(lua_State *L) {
    const int count = lua_gettop(L);
    for (int i = 1; i <= count; ++i) {
        size_t bytes = 0;
        const char *text = luaL_checklstring(L, i, &bytes);
        if (std::fwrite(text, 1, bytes, stdout) != bytes)
            return luaL_error(L, "cannot write to the standard output");
    }
    std::fflush(stdout);
    return 0;
}

// Lua calls it with pieces of a warning, such as that of an error in a finalizer.
void warn(void *, const char *text, int more) {
    static bool within = false;
    if (!within && more == 0 && text[0] == '@')
        return; // a control message; warnings are always printed
    std::fprintf(stderr, "%s%s%s", within ? "" : "Lua warning: ", text, more != 0 ? "" : "\n");
    within = more != 0;
}

// The rest, in Lua. Gets save and write, and returns the function that runs a chunk.
constexpr char prelude[] = R"lua(
local save, write = ...
_ENV.save = save

local function without(name, functions, reason)
  local function is_not_there(_, key)
    error(name .. "." .. tostring(key) .. " is not there: " .. reason, 2)
  end
  return setmetatable(functions, {__index = is_not_there})
end

local load, loadfile = load, loadfile
local function text_only(mode)
  if mode ~= nil and not tostring(mode):find("t", 1, true) then
    error("binary chunks are not taken: Lua does not check them", 3)
  end
  return "t"
end
function _ENV.load(chunk, name, mode, ...)
  return load(chunk, name or type(chunk) == "string" and chunk or "=(load)", text_only(mode), ...)
end
function _ENV.loadfile(path, mode, ...)
  return loadfile(path, text_only(mode), ...)
end
function _ENV.dofile(path)
  return assert(loadfile(path, "t"))()
end

local function search(name)
  local path, reason = package.searchpath(name, package.path)
  if not path then return reason end
  return assert(loadfile(path, "t")), path
end
package.searchers[2] = search
package.searchers[3], package.searchers[4] = nil, nil
package.cpath, package.loadlib = "", nil

_ENV.io = without("io", {write = write}, "a file handle would not outlive the process")
package.loaded.io = io
os.exit, os.setlocale = nil, nil
without("os", os, "it is the process's own, and a state has many; :quit leaves")
debug.debug, debug.getregistry = nil, nil

local function show(...)
  if select("#", ...) > 0 then print(...) end
end
return function(chunk) show(chunk()) end
)lua";

const luaL_Reg libraries[] = {
    {LUA_GNAME, luaopen_base},       {LUA_LOADLIBNAME, luaopen_package}, {LUA_COLIBNAME, luaopen_coroutine},
    {LUA_TABLIBNAME, luaopen_table}, {LUA_OSLIBNAME, luaopen_os},        {LUA_STRLIBNAME, luaopen_string},
    {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8},    {LUA_DBLIBNAME, luaopen_debug},
};

} // namespace

int open_libraries(lua_State *L) {
    lua_setwarnf(L, warn, nullptr);
    for (const luaL_Reg &library : libraries) {
        luaL_requiref(L, library.name, library.func, 1);
        make_closures(L);
        lua_pop(L, 1);
    }
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    make_closures(L);
    lua_pop(L, 2);
    lua_pushglobaltable(L);
    wrap_iterating(L, "pairs");
    wrap_iterating(L, "ipairs");
    lua_getfield(L, -1, LUA_UTF8LIBNAME);
    wrap_iterating(L, "codes");
    lua_pop(L, 2);
    if (luaL_loadbufferx(L, prelude, sizeof prelude - 1, "=prelude", "t") != LUA_OK)
        return lua_error(L);
    lua_pushvalue(L, 1);
    make_closure(L);
    lua_pushcfunction(L, write);
    make_closure(L);
    lua_call(L, 2, 1);
    return 1;
}

} // namespace lua
