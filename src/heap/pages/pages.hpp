// Runs of pages: taken, freed, kept by threads; and the memory of those that are free.
#pragma once

#include "extent_cache.hpp"
#include "extent_tree.hpp"
#include "page_extents.hpp"
#include "page_memory.hpp"
#include "touched_pages.hpp"
