// Runs of pages: taken, freed, kept by threads; and the memory of those that are free.
#pragma once

#include "page_memory.hpp"
#include "run_cache.hpp"
#include "run_tree.hpp"
#include "runs.hpp"
#include "touched_pages.hpp"
