// What is on the sink: frames, headers, and reading them back.
#pragma once

#include "frame.hpp"
#include "log_layout.hpp"
#include "partition_reader.hpp"
#include "ring_view.hpp"
