// What the library's own sinks have in common: a table, and how it ends.
#pragma once

#include "log.hpp"

namespace taiyen {

struct own_sink {
    ty_log_sink table; // first: the caller's pointer is to it
    void (*destroy)(own_sink *self);
};

} // namespace taiyen
