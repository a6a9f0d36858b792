// A picture of a heap: how its pages are used, with its metrics and a legend. One drawing path makes SVG and PNG. Uses
// the public C API only.
#pragma once

#include <cstdint>
#include <string>
#include <taiyen/taiyen.h>

namespace heap_map {

struct options {
    std::string name; // the title, such as the file's name
    int width = 1200; // of the picture, in pixels; at least width_min
    bool waiting =
        false; // the heap is open read-only: its dirty pages wait in the journal to be checkpointed to the image
};

inline constexpr int width_min = 600;
inline constexpr int width_max = 8000;

// Whether the path's extension is a format that can be drawn (.svg, .png).
bool can_draw(const std::string &path);

// Draws an open heap of any kind into a file, which is replaced atomically: a failure leaves what was there. Other
// threads' allocations on the heap wait while it is read. Errors: TY_E_ARGUMENT, TY_E_IO, TY_E_PERMISSION, TY_E_SPACE
// with the error detail set.
ty_status draw(ty_heap *heap, const std::string &path, const options &options);

} // namespace heap_map
