// The atlas packed into one file, and unpacked at another address, laid out anew.
#pragma once

#include "fingerprint.hpp"
#include <filesystem>
#include <string>

namespace demo {

struct move_plan {
    std::string heap_path;
    std::filesystem::path packed_path; // made anew
    std::string copy_path;             // likewise, with its journal
    std::filesystem::path picture_path;
};

// Prints what it does. Throws where the unpacked atlas is not what was packed.
void pack_and_move(const move_plan &plan);

} // namespace demo
