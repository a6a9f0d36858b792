// What a transaction has changed: ranges, words, and the memory that records them.
#pragma once

#include "arena.hpp"
#include "ranges.hpp"
#include "word_table.hpp"
