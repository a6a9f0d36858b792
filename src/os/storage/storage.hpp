// Files: the built-in storage, by direct calls, and helpers.
#pragma once

#include "copied_files.hpp"
#include "file_system.hpp"
#include "storage_file.hpp"
