// What a transaction has changed: ranges, words, and the memory to note them in.
#pragma once

#include "arena.hpp"
#include "ranges.hpp"
#include "word_table.hpp"
