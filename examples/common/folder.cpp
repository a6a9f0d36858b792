#include "folder.hpp"
#include "heap_file.hpp"

namespace demo {

namespace fs = std::filesystem;

fs::path default_folder() {
    std::error_code error;
    fs::path program = fs::read_symlink("/proc/self/exe", error);
    return error ? "demo" : program.parent_path().parent_path() / "demo";
}

std::string shown(const fs::path &path) {
    std::error_code ignored;
    fs::path near = fs::proximate(path, ignored);
    return (near.empty() || *near.begin() == ".." ? path : near).string();
}

void prepare_folder(const fs::path &folder, const std::string &heap_path, const std::vector<std::string> &endings) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        throw failure("cannot make the folder " + folder.string() + ": " + error.message() +
                      "; name another one with --folder");
    ty_info info{};
    info.struct_size = sizeof info;
    if (ty_read_info(heap_path.c_str(), nullptr, &info) == TY_OK && info.in_use)
        throw failure(heap_path + " is in use by another process; wait for it, or name another folder with --folder");
    for (const std::string &ending : endings) {
        fs::remove(heap_path + ending, error);
        if (error)
            throw failure("cannot remove " + heap_path + ending + " of an earlier run: " + error.message());
    }
}

std::string with_commas(uint64_t number) {
    std::string digits = std::to_string(number);
    std::string text;
    for (size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0)
            text += ',';
        text += digits[i];
    }
    return text;
}

} // namespace demo
