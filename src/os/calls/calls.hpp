// System calls as functions that are not cancellation points, and descriptors. Only for src/os.
#pragma once

#include "descriptor.hpp"
#include "kernel_abi.hpp"
#include "random.hpp"
#include "syscalls.hpp"
