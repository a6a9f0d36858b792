#include "types/descriptors_file.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <taiyen/taiyen.h>
#include <taiyen/value_types.hpp>

namespace cli {

ty_status described_descriptors::read(const std::string &path) {
    if (path.empty())
        return TY_OK;
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || file.bad())
        return ty_error_set(TY_E_NOT_FOUND, errno, "read type descriptors", path.c_str(), UINT64_MAX,
                            "give the path of a text with type descriptors");
    if (ty_status status = ty_types_create(&descriptors_))
        return status;
    const ty_status read = ty_types_read(descriptors_, text.data(), text.size());
    return read ? read : taiyen::bind_values(descriptors_);
}

ty_status described_descriptors::load(ty_heap *heap) {
    if (ty_root(heap, TY_TYPES_ROOT) == nullptr)
        return ty_error_set(TY_E_NOT_FOUND, TY_CAUSE_IN_OPERATION,
                            "find out what is a pointer: the heap keeps no type descriptors", nullptr, UINT64_MAX,
                            "name a text that describes them with --types");
    if (ty_status status = ty_types_create(&descriptors_))
        return status;
    const ty_status loaded = ty_types_load(descriptors_, heap);
    return loaded ? loaded : taiyen::bind_values(descriptors_);
}

} // namespace cli
