// An open image: snapshots, the batches that they write, checkpointing them, giving memory back.
#pragma once

#include "image_runtime.hpp"
#include "tracking.hpp"
