// Threads' caches of a heap, and the safepoint that makes all of them stand still.
#pragma once

#include "cache.hpp"
#include "safepoint.hpp"
