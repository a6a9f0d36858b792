// What the program and its libraries share.
#pragma once

#include <cstddef>

struct shape {
    virtual long extent() const = 0;
    virtual long step() const = 0;
};

inline constexpr std::size_t shape_room = 64;
extern "C" shape *make_shape(void *place);
extern "C" shape *make_plugin_shape(void *place);

// In builds of the program that use it directly, all use a copy of it that the program has (a copy relocation).
extern "C" long table_of_library[4];
extern "C" long *find_table_of_library();
