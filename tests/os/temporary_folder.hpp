// A folder of a test's own, removed with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

class temporary_folder {
public:
    explicit temporary_folder(const std::filesystem::path &parent = std::filesystem::temp_directory_path()) {
        std::string name = (parent / "taiyen-os-XXXXXX").string();
        path_ = mkdtemp(name.data()) != nullptr ? name : std::string();
    }
    ~temporary_folder() {
        std::error_code ignored;
        if (!path_.empty())
            std::filesystem::remove_all(path_, ignored);
    }
    std::string file(const char *name) const { return path_ + "/" + name; }

private:
    std::string path_;
};
