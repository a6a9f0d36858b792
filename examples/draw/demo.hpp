// The demo: the world as a drawing, edited, saved, killed, opened again, undone back to the import and redone.
#pragma once

#include <cstdint>
#include <filesystem>

namespace draw {

struct demo_plan {
    std::filesystem::path countries; // the TopoJSON file
    std::filesystem::path folder;    // where the drawing and the pictures go
    unsigned rounds = 20;
    uint64_t seed = 1;
};

// True if all that was to be proven is proven.
bool run_demo(const demo_plan &plan);

} // namespace draw
