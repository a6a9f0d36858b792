// The content of a heap's files: headers, checksums, the journal.
#pragma once

#include "checksum.hpp"
#include "headers.hpp"
#include "holds.hpp"
#include "image_layout.hpp"
#include "journal.hpp"
#include "marks_file.hpp"
#include "page_sums.hpp"
#include "paths.hpp"
