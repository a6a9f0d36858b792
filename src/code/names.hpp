// What a symbol's name says about which symbol it is.
#pragma once

#include <cstddef>

namespace taiyen {

// Longer names, or nearly as long ones, count as uncertain.
inline constexpr size_t looked_at_bytes_max = 4096;

// Whether a symbol's name identifies it for certain, also in another build: not if the compiler numbers things that
// have no name of their own, by their order.
bool name_is_certain(const char *name);

// Of several things of one name in one function (clang, in C with -flto: in one program) compilers number all but the
// first: `_ZZ4lookiE5table`, `_ZZ4lookiE5table_0`; `look.table`, `look.table.1`; `helper`, `helper.12`. Writes the
// first one's name, for a name with such a number, into looked_at_bytes_max bytes; false: the name has no such number.
// (Itanium C++ ABI, "Discriminators".)
bool find_first_of_name(const char *name, char *first);

} // namespace taiyen
