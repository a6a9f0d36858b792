// Taiyen in C++: containers, header-only, C++17 and later. They live in the heap, and the next run finds them there.
// taiyen.hpp does not include them.
//
// For heaps with one writer: values, and dicts, lists, sets and deques of them (values.hpp). For concurrent heaps:
// maps, queues and counters for many threads, at a root or as a member of an object there.
#ifndef TAIYEN_CONTAINERS_HPP
#define TAIYEN_CONTAINERS_HPP

#include "counter.hpp"
#include "hash_map.hpp"
#include "ordered_map.hpp"
#include "queue.hpp"
#include "values.hpp"

#endif
