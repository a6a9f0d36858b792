// What is on the sink: frames, headers, and reading them back.
#pragma once

#include "frame.hpp"
#include "log_layout.hpp"
#include "ring_view.hpp"
#include "stream_reader.hpp"
