// System calls as functions, made past libc where it would cancel a thread, and descriptors. For src/os alone.
#pragma once

#include "descriptor.hpp"
#include "direct_calls.hpp"
#include "kernel_abi.hpp"
#include "random.hpp"
#include "syscalls.hpp"
