// Blocks of any size: classifying pointers, allocating, freeing, resizing, and the thread caches of blocks.
#pragma once

#include "alloc.hpp"
#include "pointer.hpp"
