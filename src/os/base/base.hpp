// Code that needs no kernel: failures as values, checksums, page sizes, cache lines, caught exceptions.
#pragma once

#include "cache_lines.hpp"
#include "cancellation.hpp"
#include "caught.hpp"
#include "checksum.hpp"
#include "environment.hpp"
#include "failure.hpp"
#include "fault.hpp"
#include "page_sizes.hpp"
