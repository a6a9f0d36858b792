// What the library's own sinks share: a table of functions, and how to end them.
#pragma once

#include "../log.hpp"

namespace taiyen {

struct internal_sink {
    ty_log_sink table; // first: the caller's pointer is to it
    void (*destroy)(internal_sink *self);
    // N4: gives it the access rights of `like`. NULL: nothing to protect.
    ty_status (*protect)(internal_sink *self, const storage_file &like);
    ty_status (*flush)(internal_sink *self); // NULL: nothing to flush
    ty_status (*check)(internal_sink *self); // whether what is written to it is still reached by its name; NULL: yes
};

} // namespace taiyen
