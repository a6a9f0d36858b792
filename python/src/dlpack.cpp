// Arrays as DLPack has them.
#include "core.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>

namespace nb = nanobind;

namespace typy {

// Of a memoryview, which keeps the array.
nb::object dlpack(const nb::object &view, const std::string &type) {
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view.ptr());
    std::vector<std::size_t> shape(buffer->shape, buffer->shape + buffer->ndim);
    nb::dlpack::dtype dtype{};
    dtype.lanes = 1;
    dtype.bits = static_cast<std::uint8_t>(buffer->itemsize * 8);
    using code = nb::dlpack::dtype_code;
    dtype.code = static_cast<std::uint8_t>(type == "?"                    ? code::Bool
                                           : type[0] == 'Z'               ? code::Complex
                                           : std::strchr("efd", type[0])  ? code::Float
                                           : std::strchr("bhiq", type[0]) ? code::Int
                                                                          : code::UInt);
    if (buffer->readonly)
        return nb::cast(
            nb::ndarray<nb::ro, nb::array_api>(buffer->buf, shape.size(), shape.data(), view, nullptr, dtype));
    return nb::cast(nb::ndarray<nb::array_api>(buffer->buf, shape.size(), shape.data(), view, nullptr, dtype));
}

} // namespace typy
