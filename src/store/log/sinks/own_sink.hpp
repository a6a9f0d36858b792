// What the library's own sinks share: a table of functions, and how to end them.
#pragma once

#include "../log.hpp"

namespace taiyen {

struct own_sink {
    ty_log_sink table; // first: the caller's pointer is to it
    void (*destroy)(own_sink *self);
    // N4: gives it the access rights of `like`. NULL: nothing to protect.
    ty_status (*protect)(own_sink *self, const storage_file &like);
    ty_status (*flush)(own_sink *self); // NULL: nothing to flush
    ty_status (*check)(own_sink *self); // whether what is written to it is still reached by its name; NULL: yes
};

} // namespace taiyen
