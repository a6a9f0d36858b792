// Fault sites for the library, always false in ordinary builds: include/taiyen/detail/fault.hpp explains them.
#pragma once

#include "taiyen/detail/fault.hpp"

namespace taiyen {
using detail::fault;
}
