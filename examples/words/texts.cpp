#include "texts.hpp"
#include "heap_file.hpp"
#include "read_file.hpp"
#include <algorithm>
#include <filesystem>
#include <sstream>

namespace words {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const std::vector<std::string> &paths) {
    std::vector<fs::path> files;
    for (const std::string &path : paths) {
        if (!fs::is_directory(path)) {
            files.emplace_back(path);
            continue;
        }
        for (const fs::directory_entry &each : fs::directory_iterator(path))
            if (each.path().extension() == ".md")
                files.push_back(each.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

texts read_texts(const std::vector<std::string> &paths) {
    texts read;
    for (const fs::path &file : files_of(paths)) {
        std::istringstream content(demo::read_whole(file.string()));
        std::string text;
        for (size_t number = 1; std::getline(content, text); ++number)
            if (!text.empty())
                read.lines.push_back({read.names.size(), number, text});
        read.names.push_back(file.filename().string());
    }
    if (read.lines.empty())
        throw demo::failure("there is nothing to read in what was named");
    return read;
}

} // namespace words
