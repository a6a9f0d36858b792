// The input: texts, line by line. They stay in the process's memory.
#pragma once

#include <string>
#include <vector>

namespace words {

struct line {
    size_t text; // in names
    size_t number;
    std::string content;
};

struct texts {
    std::vector<std::string> names; // without folders
    std::vector<line> lines;        // of all texts, one after the other; empty ones are left out
};

// Files, and the Markdown files of folders, in order of their names. Throws if one cannot be read, or if there is
// nothing to read at all.
texts read_texts(const std::vector<std::string> &paths);

} // namespace words
