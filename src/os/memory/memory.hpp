// Memory: mapping it, address space set aside, moving pages, sets of pages, how much memory there is, memory
// that processes share.
#pragma once

#include "memory_room.hpp"
#include "page_mover.hpp"
#include "page_set.hpp"
#include "shared_memory.hpp"
#include "space.hpp"
#include "vm.hpp"
#include "word_search.hpp"
