// The façade of the os layer: the only code that calls the operating system.
#pragma once

#include "base/base.hpp"
#include "calls/random.hpp"
#include "memory/memory.hpp"
#include "process/process.hpp"
#include "program/program.hpp"
#include "storage/storage.hpp"
#include "tracking/tracking.hpp"
