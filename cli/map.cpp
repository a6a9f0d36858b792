// taiyen map: a picture of a heap, opened read-only.
#include "commands.hpp"
#include "heap_map.hpp"

#include <array>
#include <sys/stat.h>
#include <utility>

namespace cli {

namespace {

// The path of the file that this one leads to; as it is where that cannot be told.
std::string target_of(const std::string &path) {
    const ty_storage &storage = *ty_storage_default();
    char target[TY_STORAGE_PATH_MAX];
    return storage.resolve(storage.context, path.c_str(), target, sizeof target) ? path : target;
}

bool same_file(const std::string &a, const std::string &b) {
    struct stat of_a {
    }, of_b{};
    if (target_of(a) == target_of(b))
        return true;
    return !stat(a.c_str(), &of_a) && !stat(b.c_str(), &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

// The picture would replace what it is drawn from.
ty_status check_picture_path(const heap_files &files, const std::string &picture_path) {
    const std::string image = target_of(files.path);
    const std::string journal = files.journal_path.empty() ? image + "-journal" : files.journal_path;
    const std::string log = files.log_path.empty() ? image + "-log" : files.log_path;
    for (const auto &[file, remedy] :
         std::array{std::pair{image, "it is the heap's image; give the picture another path"},
                    std::pair{journal, "it is the heap's journal; give the picture another path"},
                    std::pair{log, "it is the heap's log; give the picture another path"}})
        if (same_file(picture_path, file))
            return ty_error_set(TY_E_ARGUMENT, 0, "write the picture over the heap", picture_path.c_str(), UINT64_MAX,
                                remedy);
    return TY_OK;
}

} // namespace

int map(const heap_files &files, const std::string &picture_path, int width) {
    if (ty_status status = check_picture_path(files, picture_path))
        return complain(status);
    const ty_open_options options = files.options();
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &options, &heap, nullptr))
        return complain(status);
    heap_map::options picture;
    picture.name = name_of(files.path);
    picture.width = width;
    picture.waiting = true;
    int code = exit_fine;
    if (ty_status status = heap_map::draw(heap, picture_path, picture))
        code = complain(status);
    if (ty_status status = ty_close(heap))
        code = complain(status);
    return code;
}

} // namespace cli
