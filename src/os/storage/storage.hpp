// Files: the storage table over the file system, by direct calls.
#pragma once

#include "copied_files.hpp"
#include "file_system.hpp"
#include "storage_file.hpp"
