// The tables of a heap, persistent and volatile, and the mapping from an address to its heap.
#pragma once

#include "address_table.hpp"
#include "check_calls.hpp"
#include "class_tables.hpp"
#include "heap_layout.hpp"
#include "heap_runtime.hpp"
#include "limits.hpp"
#include "provide.hpp"
