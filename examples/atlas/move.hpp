// The atlas packed into one file, and unpacked at another address, in a new layout.
#pragma once

#include "fingerprint.hpp"
#include <filesystem>
#include <string>

namespace demo {

struct move_plan {
    std::string heap_path;
    std::filesystem::path packed_path; // recreated
    std::string copy_path;             // recreated, with its journal
    std::filesystem::path picture_path;
};

// Prints what it does. Throws if the unpacked atlas is not what was packed.
void pack_and_move(const move_plan &plan);

} // namespace demo
