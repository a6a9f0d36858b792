// Taiyen in C++: values and containers as in Python, for heaps with one writer, header-only, C++17 and later.
// containers.hpp includes it.
//
// Purpose: numbers, texts, bytes, tuples, dicts, lists, sets, deques and records that live in a heap of any kind but a
// concurrent one, are found there by the next run, and take part in transactions, undo and snapshots without further
// calls.
//
// The format of a heap's values has its own version (value_layout.hpp), which is not the library's version.
#ifndef TAIYEN_VALUES_HPP
#define TAIYEN_VALUES_HPP

#include "deque.hpp"
#include "detail/value_collect.hpp"
#include "detail/value_views.hpp"
#include "dict.hpp"
#include "list.hpp"
#include "records.hpp"

#endif
