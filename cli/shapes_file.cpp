#include "shapes_file.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <taiyen/taiyen.h>
#include <taiyen/value_shapes.hpp>

namespace cli {

ty_status described_shapes::read(const std::string &path) {
    if (path.empty())
        return TY_OK;
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || file.bad())
        return ty_error_set(TY_E_NOT_FOUND, errno, "read a description of shapes", path.c_str(), UINT64_MAX,
                            "give the path of a text that describes shapes");
    if (ty_status status = ty_shapes_create(&shapes_))
        return status;
    const ty_status read = ty_shapes_read(shapes_, text.data(), text.size());
    return read ? read : taiyen::bind_values(shapes_);
}

ty_status described_shapes::load(ty_heap *heap) {
    if (ty_root(heap, TY_SHAPES_ROOT) == nullptr)
        return ty_error_set(TY_E_NOT_FOUND, TY_CAUSE_IN_OPERATION,
                            "find out what is a pointer: the heap keeps no shapes", nullptr, UINT64_MAX,
                            "name a text that describes them with --shapes");
    if (ty_status status = ty_shapes_create(&shapes_))
        return status;
    const ty_status loaded = ty_shapes_load(shapes_, heap);
    return loaded ? loaded : taiyen::bind_values(shapes_);
}

} // namespace cli
