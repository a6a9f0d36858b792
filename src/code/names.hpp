// What a symbol's name says of which symbol it is.
#pragma once

#include <cstddef>

namespace taiyen {

// Longer names, or nearly as long ones, count as not certain.
inline constexpr size_t looked_at_bytes_max = 4096;

// Whether a symbol's name says for certain which it is, also in another build: not where the compiler numbers what has
// no name of its own, by its order.
bool name_is_certain(const char *name);

// Of things of one name in one function (clang, in C with -flto: in one program) compilers number all but the first:
// `_ZZ4lookiE5table`, `_ZZ4lookiE5table_0`; `look.table`, `look.table.1`; `helper`, `helper.12`. The first one's name,
// of a name with such a number, into looked_at_bytes_max bytes; false: there is no such number. (Itanium C++ ABI,
// "Discriminators".)
bool find_first_of_name(const char *name, char *first);

} // namespace taiyen
