// Blocks of any size: what a pointer is, allocating, freeing, resizing, blocks that threads hold.
#pragma once

#include "alloc.hpp"
#include "held.hpp"
#include "parcels.hpp"
#include "pointer.hpp"
#include "recycle.hpp"
#include "relocate.hpp"
