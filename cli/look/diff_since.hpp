// The changes of a heap since its last snapshot, from the log; and what the image does not hold yet of its snapshots.
#pragma once

#include "commands.hpp"

namespace cli {

int diff_since(const request &given, size_t shown_max);

} // namespace cli
