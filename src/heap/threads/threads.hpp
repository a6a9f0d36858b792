// Threads' caches of a heap, and the gate that makes all of them stand still.
#pragma once

#include "cache.hpp"
#include "gate.hpp"
