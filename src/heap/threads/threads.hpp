// Threads' caches of a heap, and the safepoint that stops all of them.
#pragma once

#include "cache.hpp"
#include "safepoint.hpp"
