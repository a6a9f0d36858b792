// The process: threads, locks and waiting, processors and nodes, stacks, text files of the kernel, messages; the
// current malloc.
#pragma once

#include "current_malloc.hpp"
#include "idle_poller.hpp"
#include "numa.hpp"
#include "stack.hpp"
#include "standard_error.hpp"
#include "text_file.hpp"
#include "thread.hpp"
#include "topology.hpp"
