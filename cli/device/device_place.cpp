// What the system reports about the disk under a folder.
#include "device/device.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <linux/magic.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

namespace cli::device {

namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path &path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    while (!line.empty() && line.back() == ' ')
        line.pop_back();
    return line;
}

// "\040" is a space, and so on.
std::string unescaped(const std::string &word) {
    std::string text;
    for (size_t i = 0; i < word.size(); ++i) {
        if (word[i] == '\\' && i + 3 < word.size()) {
            text += static_cast<char>(std::strtoul(word.substr(i + 1, 3).c_str(), nullptr, 8));
            i += 3;
        } else {
            text += word[i];
        }
    }
    return text;
}

struct mount {
    std::string type, source, options;
};

bool lies_in(const std::string &path, const std::string &folder) {
    return path == folder || folder == "/" || path.starts_with(folder + "/");
}

// The mount of the file system that contains the path: the deepest one, and of several on one directory the last.
mount mount_of(const std::string &path) {
    std::ifstream table("/proc/self/mountinfo");
    mount best;
    size_t deepest = 0;
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string skipped, point, options, dash, type, source, super_options;
        words >> skipped >> skipped >> skipped >> skipped >> point >> options;
        while (words >> dash && dash != "-") {
        }
        words >> type >> source >> super_options;
        point = unescaped(point);
        if (!words || !lies_in(path, point) || point.size() < deepest)
            continue;
        deepest = point.size();
        best = {type, unescaped(source), options + "," + super_options};
    }
    return best;
}

bool has_option(const mount &of, const std::string &name) {
    return ("," + of.options + ",").find("," + name + ",") != std::string::npos;
}

// The block device's folder in /sys; empty: the system reports none.
fs::path block_device(const std::string &folder, const mount &of) {
    struct stat status {};
    if (stat(folder.c_str(), &status))
        return {};
    dev_t number = status.st_dev;
    if (major(number) == 0 && !stat(of.source.c_str(), &status) && S_ISBLK(status.st_mode))
        number = status.st_rdev;
    std::error_code error;
    const std::string name = std::to_string(major(number)) + ":" + std::to_string(minor(number));
    return fs::canonical("/sys/dev/block/" + name, error);
}

void look_at_device(const fs::path &device, place &found) {
    if (device.empty())
        return;
    found.device = device.filename();
    const fs::path whole = fs::exists(device / "queue") ? device : device.parent_path(); // of a partition
    found.model = line_of(whole / "device" / "model");
    found.write_cache = line_of(whole / "queue" / "write_cache");
    if (const std::string rotational = line_of(whole / "queue" / "rotational"); !rotational.empty())
        found.rotational = rotational != "0";
    if (const std::string fua = line_of(whole / "queue" / "fua"); !fua.empty())
        found.fua = fua != "0";
}

void note_caches(const mount &of, place &found) {
    if (found.in_memory) {
        found.notes.push_back(found.file_system +
                              " keeps files in memory: the figures mean nothing for what survives a power cut");
        return;
    }
    if (has_option(of, "nobarrier") || has_option(of, "barrier=0"))
        found.notes.push_back("it is mounted without barriers: flushes do not reach the device, and a power cut may "
                              "take back what was said to be durable");
    if (found.write_cache == "write back")
        found.notes.push_back("the device has a cache that a power cut empties, as far as the system knows; the kernel "
                              "has it flushed for what must be durable");
    else if (found.write_cache == "write through")
        found.notes.push_back("the device says that no power cut takes what it has taken: flushes cost it nothing");
    else
        found.notes.push_back(
            "what the device caches cannot be known from here: see what its maker says of power cuts");
}

} // namespace

place look_at(const std::string &folder) {
    place found;
    std::error_code error;
    const fs::path whole = fs::canonical(folder, error);
    const mount of = mount_of(error ? folder : whole.string());
    found.file_system = of.type;
    struct statfs status {};
    if (!statfs(folder.c_str(), &status))
        found.in_memory = status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
    look_at_device(block_device(folder, of), found);
    note_caches(of, found);
    return found;
}

} // namespace cli::device
