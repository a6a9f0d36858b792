// The blocks part: where a heap's blocks are, in which order they are packed, and where they go.
#pragma once

#include "chunks.hpp"
#include "layout.hpp"
#include "moves.hpp"
