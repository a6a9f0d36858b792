// Taiyen in C++: containers of concurrent heaps, header-only, C++17 and later. They live in the heap, at a root or as a
// member of what is, and are found there by the next run. taiyen.hpp does not include them.
#ifndef TAIYEN_CONTAINERS_HPP
#define TAIYEN_CONTAINERS_HPP

#include "counter.hpp"
#include "hash_map.hpp"
#include "ordered_map.hpp"
#include "queue.hpp"

#endif
