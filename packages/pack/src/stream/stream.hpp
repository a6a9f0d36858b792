// The stream part: frames with checksums, and a heap's tables in them.
#pragma once

#include "frames.hpp"
#include "tables.hpp"
