// Sound heap files of several kinds and states, made once; and damaged copies of them on a simulated disk.
#pragma once

#include "fuzz/patches.hpp"
#include "src/store/image/files/image_layout.hpp"
#include "tests/simulated_disk/storage_sim.hpp"
#include <array>
#include <map>
#include <vector>

namespace fuzz {

inline constexpr const char *image_path = "fuzzed.ty";
inline constexpr const char *journal_path = "fuzzed.ty-journal";
inline constexpr size_t limit_bytes = size_t{64} << 20; // the smallest
inline constexpr size_t staging_bytes = size_t{4} << 20;

using block = std::array<uint8_t, taiyen::page_bytes>;

// A sparse file: the blocks that hold data.
struct file {
    bool present = false;
    uint64_t size = 0;
    std::map<uint64_t, block> blocks; // by offset
};

struct file_set {
    file image;
    file journal;
};

// Where a patch may be applied.
struct region {
    bool in_journal;
    uint64_t offset;
};

struct scenario {
    file_set files;
    std::vector<region> regions;  // control structures first
    std::vector<uint64_t> chunks; // offsets of chunk headers in the journal
};

enum class strike { anywhere, journal_only };

// The scenarios, made at the first call. Aborts the program if a sound heap cannot be made.
const std::vector<scenario> &scenarios();

// A scenario's files with the input's patches applied, and checksums repaired as its flags say.
file_set damage(const input &changes, strike where);

// A disk that holds the files.
taiyen::os::sim_disk *make_disk(const file_set &files);

} // namespace fuzz
