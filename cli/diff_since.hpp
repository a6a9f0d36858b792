// What has changed in a heap since its last snapshot: the log; and what of its snapshots the image does not hold yet.
#pragma once

#include "commands.hpp"

namespace cli {

int diff_since(const request &given, size_t shown_max);

} // namespace cli
