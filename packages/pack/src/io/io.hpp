// The io part: where streams go to and come from, and the heaps that are made. The only part that calls the operating
// system, other than through the public API.
#pragma once

#include "file_ends.hpp"
#include "processors.hpp"
#include "target.hpp"
