// taiyen map: a picture of a heap, opened read-only, or its metrics.
#include "common/text.hpp"
#include "look/reading.hpp"
#include "picture/heap_map.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <utility>

namespace cli {

namespace {

// The path of the file that a symbolic link leads to; the path itself if that cannot be determined.
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

// The picture must not replace the file that it is drawn from.
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

// 0: not a width that can be drawn.
int width_of(const std::string &text) {
    int width = 0;
    const char *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, width);
    const bool drawable = width >= heap_map::width_min && width <= heap_map::width_max;
    return error == std::errc() && stop == end && drawable ? width : 0;
}

// Checks the words alone; prints what is wrong with them.
bool is_possible(const request &given) {
    std::string what;
    if (given.picture_path.empty() && !given.json)
        what = "'map' needs --output PICTURE, or --json";
    else if (!given.picture_path.empty() && !heap_map::can_draw(given.picture_path))
        what = "the picture '" + text::printable(given.picture_path) + "' does not end in .svg or .png";
    else if (!given.width.empty() && width_of(given.width) == 0)
        what = "the option '--width' takes 600 to 8000 pixels, and was given '" + text::printable(given.width) + "'";
    if (!what.empty())
        std::fprintf(stderr, "taiyen: %s; see taiyen help map\n", what.c_str());
    return what.empty();
}

ty_status print_figures(ty_heap *heap, const heap_files &files, const request &given) {
    heap_metrics metrics;
    if (ty_status status = metrics.read(heap))
        return status;
    json::document one{{"path", files.path}, {"kind", kind_name(ty_heap_kind(heap))}};
    metrics.add_to(one);
    if (!given.picture_path.empty())
        one["picture"] = given.picture_path;
    json::print(one);
    return TY_OK;
}

ty_status draw(ty_heap *heap, const heap_files &files, const request &given) {
    heap_map::options picture;
    picture.name = name_of(files.path);
    if (!given.width.empty())
        picture.width = width_of(given.width);
    picture.waiting = true;
    return heap_map::draw(heap, given.picture_path, picture);
}

int map_of(const heap_files &files, const request &given) {
    const bool drawn = !given.picture_path.empty();
    if (drawn)
        if (ty_status status = check_picture_path(files, given.picture_path))
            return refuse(files, given, status);
    read_heap heap;
    if (ty_status status = heap.open(files))
        return refuse(files, given, status);
    int code = exit_fine;
    ty_status status = drawn ? draw(heap, files, given) : TY_OK;
    if (!status && given.json)
        status = print_figures(heap, files, given);
    if (status)
        code = refuse(files, given, status);
    if (ty_status closed = heap.close())
        code = complain(closed);
    return code;
}

} // namespace

int map(const request &given) {
    return is_possible(given) ? map_of(files_at_mark(given), given) : int(exit_cannot);
}

} // namespace cli
