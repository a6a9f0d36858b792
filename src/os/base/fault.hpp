// Fault sites for the library, always false in ordinary builds: include/taiyen/fault.hpp says what they are.
#pragma once

#include "taiyen/fault.hpp"

namespace taiyen {
using detail::fault;
}
