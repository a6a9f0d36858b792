// Memory: mappings, claimed address space, growable arrays, moving pages, sets of pages, available memory, memory
// shared between processes.
#pragma once

#include "array.hpp"
#include "memory_available.hpp"
#include "page_mover.hpp"
#include "page_set.hpp"
#include "shared_memory.hpp"
#include "space.hpp"
#include "vm.hpp"
#include "word_search.hpp"
