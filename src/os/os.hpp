// The façade of the os layer: the only code that calls the operating system.
#pragma once

#include "cache_lines.hpp"
#include "checksum.hpp"
#include "environment.hpp"
#include "failure.hpp"
#include "fault_handler.hpp"
#include "numa.hpp"
#include "page_set.hpp"
#include "stack.hpp"
#include "standard_error.hpp"
#include "storage_file.hpp"
#include "text_file.hpp"
#include "thread.hpp"
#include "topology.hpp"
#include "tracker.hpp"
#include "vm.hpp"
#include "write_guard.hpp"
