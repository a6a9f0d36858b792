// An open image: snapshots, the batches that they write, checkpoints, eviction.
#pragma once

#include "image_runtime.hpp"
#include "tracking.hpp"
