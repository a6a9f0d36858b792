// Where a demo puts its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace demo {

// build/release/bin/atlas-demo puts its files into build/release/demo.
std::filesystem::path default_folder();

// A path as a person would type it here.
std::string shown(const std::filesystem::path &path);

// Creates the folder, and makes room in it for a new heap: removes the files of an earlier run (their suffixes are
// appended to the heap's path). Refuses while a process uses that heap.
void prepare_folder(const std::filesystem::path &folder, const std::string &heap_path,
                    const std::vector<std::string> &endings);

// "144,563"
std::string with_commas(uint64_t number);

} // namespace demo
