// Taiyen in C++: values and containers for heaps with one writer, header-only, C++17 and later: what Python has, in a
// heap. containers.hpp includes it.
//
// Purpose: numbers, texts, bytes, tuples, dicts, lists, sets, deques and records that live in a heap of any kind but a
// concurrent one, are found there by the next run, and belong to transactions, undo and snapshots without a word.
//
// A heap's values are of a format with a version (value_layout.hpp), which is no version of the library.
#ifndef TAIYEN_VALUES_HPP
#define TAIYEN_VALUES_HPP

#include "deque.hpp"
#include "dict.hpp"
#include "list.hpp"
#include "records.hpp"
#include "value_collect.hpp"
#include "value_views.hpp"

#endif
