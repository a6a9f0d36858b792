// The library that the program is linked with.
#include "plugin.hpp"

#include <new>

#if BUILD > 1
extern "C" [[gnu::visibility("default")]] long more_of_the_library(long a) {
    return a * a * a % 17;
}
extern "C" [[gnu::visibility("default")]] const char *const more_data_of_the_library[64] = {"this"};
#endif

extern "C" {
[[gnu::visibility("default")]] long table_of_library[4] = {1, 2, 3, 4};
[[gnu::visibility("default")]] long *find_table_of_library() {
    return table_of_library;
}
}

struct square : shape {
    long side = 5;
    long extent() const override;
    long step() const override;
};

long square::extent() const {
    return side * side;
}
long square::step() const {
    return 1;
}

extern "C" shape *make_shape(void *place) {
    return ::new (place) square;
}
