// The demo's counter: a state that follows completely from the number that it has counted to.
#pragma once

#include "session.hpp"

namespace lua {

// Defines count(), in Lua, and what it counts with: a coroutine that has its number and sum only in local variables, a
// closure, a table with a text for each of the last numbers, and one whose keys are functions.
void define_counter(session &s);

// The number, from the coroutine's local variable; 0 before the first count. Allocates nothing that lasts.
uint64_t counted(const session &s);

// What is wrong with the state for that number; empty: nothing.
std::string problem_of_counter(const session &s);

} // namespace lua
