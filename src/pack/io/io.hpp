// The part ends: where streams go to and come from, and the heaps that are made. The only part that calls the operating
// system, but through the public API.
#pragma once

#include "file_ends.hpp"
#include "processors.hpp"
#include "target.hpp"
