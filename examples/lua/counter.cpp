#include "counter.hpp"
#include <algorithm>

namespace lua {
namespace {

constexpr uint64_t recent_most = 500;
constexpr uint64_t modulus = 1000000007;

constexpr char definition[] = R"lua(
counter = coroutine.create(function()
  local number, sum = 0, 0
  while true do
    number = number + 1
    sum = (sum * 31 + number) % 1000000007
    coroutine.yield(number, sum)
  end
end)

do
  local held = 0
  function hold() held = held + 1 return held end
end

recent = {}
last = {[print] = 0, [string.format] = 0, [ipairs{}] = 0}

function count()
  local _, number, sum = coroutine.resume(counter)
  recent[(number - 1) % 500 + 1] = ("%d counted, sum %d"):format(number, sum)
  for key in pairs(last) do last[key] = number end
  assert(hold() == number, "the closure has counted to another number")
end
)lua";

// The local variable of the coroutine, an integer. 0: it has not begun.
uint64_t local_of_counter(lua_State *L, const char *wanted) {
    uint64_t value = 0;
    lua_getglobal(L, "counter");
    lua_State *thread = lua_tothread(L, -1);
    lua_Debug frame{};
    constexpr int counting = 1; // level 0 is coroutine.yield
    if (thread != nullptr && lua_status(thread) == LUA_YIELD && lua_getstack(thread, counting, &frame) != 0)
        for (int i = 1;; ++i) {
            const char *name = lua_getlocal(thread, &frame, i);
            if (name == nullptr)
                break;
            if (std::string_view(name) == wanted)
                value = static_cast<uint64_t>(lua_tointeger(thread, -1));
            lua_pop(thread, 1);
        }
    lua_pop(L, 1);
    return value;
}

std::string text_of(uint64_t number, uint64_t sum) {
    return std::to_string(number) + " counted, sum " + std::to_string(sum);
}

std::string problem_of_texts(lua_State *L, uint64_t number) {
    if (lua_getglobal(L, "recent") != LUA_TTABLE || lua_rawlen(L, -1) != std::min(number, recent_most))
        return "the table has another number of texts";
    uint64_t sum = 0;
    for (uint64_t i = 1; i <= number; ++i) {
        sum = (sum * 31 + i) % modulus;
        if (i + recent_most <= number)
            continue;
        lua_rawgeti(L, -1, static_cast<lua_Integer>((i - 1) % recent_most + 1));
        const char *text = lua_tostring(L, -1);
        if (text == nullptr || text != text_of(i, sum))
            return "the text of " + std::to_string(i) + " is \"" + (text == nullptr ? "" : text) + "\"";
        lua_pop(L, 1);
    }
    if (local_of_counter(L, "sum") != sum)
        return "the coroutine's sum is " + std::to_string(local_of_counter(L, "sum"));
    return {};
}

// Checks the value that the table on top has for the function on top of it; pops the function.
std::string problem_of_last(lua_State *L, uint64_t number) {
    if (lua_rawget(L, -2) != LUA_TNUMBER || static_cast<uint64_t>(lua_tointeger(L, -1)) != number)
        return "what is held for a function is another number";
    lua_pop(L, 1);
    return {};
}

std::string problem_of_others(lua_State *L, uint64_t number) {
    if (lua_getglobal(L, "hold") != LUA_TFUNCTION || lua_getupvalue(L, -1, 1) == nullptr ||
        static_cast<uint64_t>(lua_tointeger(L, -1)) != number)
        return "the closure holds another number";
    if (lua_getglobal(L, "last") != LUA_TTABLE)
        return "the table of functions is gone";
    lua_getglobal(L, "print");
    if (std::string problem = problem_of_last(L, number); !problem.empty())
        return problem;
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "format");
    lua_remove(L, -2);
    return problem_of_last(L, number);
}

// Called by lua_pcall: the values read may be anything, so Lua may raise an error.
int check_counter(lua_State *L) {
    auto *problem = static_cast<std::string *>(lua_touserdata(L, 1));
    const uint64_t number = local_of_counter(L, "number");
    *problem = problem_of_texts(L, number);
    if (problem->empty())
        *problem = problem_of_others(L, number);
    return 0;
}

} // namespace

void define_counter(session &s) {
    outcome how = s.execute(definition, "=counter");
    if (how.what != outcome::kind::done)
        throw demo::failure(how.text);
}

uint64_t counted(const session &s) {
    return local_of_counter(s.state(), "number");
}

std::string problem_of_counter(const session &s) {
    lua_State *L = s.state();
    std::string problem;
    lua_pushcfunction(L, check_counter);
    lua_pushlightuserdata(L, &problem);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        problem = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    return problem.empty() ? problem : "counted to " + std::to_string(counted(s)) + ": " + problem;
}

} // namespace lua
