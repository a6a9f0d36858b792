// Blocks of any size: what a pointer is, allocating, freeing, resizing, blocks that threads cache.
#pragma once

#include "alloc.hpp"
#include "pointer.hpp"
