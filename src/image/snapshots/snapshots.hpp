// An open image: snapshots, the batches that they write, applying them, giving memory back.
#pragma once

#include "image_runtime.hpp"
#include "tracking.hpp"
