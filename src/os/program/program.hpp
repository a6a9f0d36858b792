// The program's own code: what is loaded where, which symbols a file has, its variables, and a start without randomised
// addresses.
#pragma once

#include "loaded_objects.hpp"
#include "start_again.hpp"
#include "symbols.hpp"
#include "variables.hpp"
