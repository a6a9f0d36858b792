// Tracking of written pages, by several methods, and guards that stop a write until their owner agrees.
#pragma once

#include "fault_handler.hpp"
#include "tracker.hpp"
#include "write_guard.hpp"
