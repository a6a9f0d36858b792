// Fault sites for the library: fault("name_of_what_goes_wrong"), always false in ordinary builds (taiyen/fault.hpp).
#pragma once

#include "taiyen/fault.hpp"

namespace taiyen {
using detail::fault;
}
