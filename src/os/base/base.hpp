// What needs no kernel: failures as values, checksums, page sizes, cache lines, what a callback throws.
#pragma once

#include "cache_lines.hpp"
#include "cancellation.hpp"
#include "caught.hpp"
#include "checksum.hpp"
#include "environment.hpp"
#include "failure.hpp"
#include "fault.hpp"
#include "page_sizes.hpp"
