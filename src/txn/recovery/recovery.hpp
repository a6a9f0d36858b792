// From files to a heap: opens, replay, followers.
#pragma once

#include "follow.hpp"
#include "opening.hpp"
#include "replayer.hpp"
