/* What programs were compiled with stays as it is while the soname does (docs/versions.md): checked where it compiles.
 */
#include <stddef.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size: see docs/versions.md")
#define AT(type, member, place)                                                                                        \
    _Static_assert(offsetof(type, member) == (place), #type "." #member " has moved: see docs/versions.md")
#define IS(constant, value) _Static_assert((constant) == (value), #constant " has another value: see docs/versions.md")
