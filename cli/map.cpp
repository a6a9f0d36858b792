// taiyen map: a picture of a heap, opened read-only.
#include "commands.hpp"
#include "heap_map.hpp"

namespace cli {

int map(const heap_files &files, const std::string &picture_path, int width) {
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
