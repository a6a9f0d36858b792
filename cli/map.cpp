// taiyen map: a picture of a heap, opened read-only.
#include "commands.hpp"
#include "heap_map.hpp"

namespace cli {

int map(const std::string &path, const std::string &picture_path, int width) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(path.c_str(), &options, &heap, nullptr))
        return complain(status);
    heap_map::options picture;
    picture.name = name_of(path);
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
