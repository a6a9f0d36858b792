// The entry header of this part: what the rest of the layer, and recovery, need of concurrent heaps.
#pragma once

#include "members.hpp"
