// Fault sites for the library, always false in ordinary builds: include/taiyen/fault.hpp explains them.
#pragma once

#include "taiyen/fault.hpp"

namespace taiyen {
using detail::fault;
}
