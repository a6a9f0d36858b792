// The program's own code: loaded objects, symbols of their files, variables, and a restart without randomised
// addresses.
#pragma once

#include "loaded_objects.hpp"
#include "start_again.hpp"
#include "symbols.hpp"
#include "variables.hpp"
