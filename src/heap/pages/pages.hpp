// Extents of pages: taken, freed, cached by threads; and the memory of the free ones.
#pragma once

#include "extent_cache.hpp"
#include "extent_tree.hpp"
#include "page_extents.hpp"
#include "page_memory.hpp"
#include "touched_pages.hpp"
