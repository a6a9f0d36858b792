// Records: how a transaction's changes are encoded.
#pragma once

#include "record.hpp"
#include "record_decode.hpp"
