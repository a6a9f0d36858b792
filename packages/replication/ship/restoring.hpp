// Restoring and verifying.
#pragma once

#include "catalog.hpp"
#include "segment.hpp"

namespace taiyen::ship {

ty_status restore_heap(const ty_destination &from, const char *path, const ty_restore_options &options,
                       ty_restore_report *report);
ty_status verify_objects(const ty_destination &at, ty_progress_callback *progress, ty_problem_callback *problem,
                         void *context);

} // namespace taiyen::ship
