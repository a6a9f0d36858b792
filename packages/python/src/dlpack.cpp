// Arrays as DLPack has them.
#include "core.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>

namespace nb = nanobind;

namespace typy {

// Of a memoryview, which keeps the array.
nb::object dlpack(const nb::object &view, const std::string &type) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(view.ptr(), &buffer, PyBUF_FULL_RO) < 0)
        throw nb::python_error();
    const std::vector<std::size_t> shape(buffer.shape, buffer.shape + buffer.ndim);
    void *data = buffer.buf;
    const bool read_only = buffer.readonly;
    const auto bits = static_cast<std::uint8_t>(buffer.itemsize * 8);
    PyBuffer_Release(&buffer); // the memoryview has a hold of its own
    nb::dlpack::dtype dtype{};
    dtype.lanes = 1;
    dtype.bits = bits;
    using code = nb::dlpack::dtype_code;
    dtype.code = static_cast<std::uint8_t>(type == "?"                    ? code::Bool
                                           : type[0] == 'Z'               ? code::Complex
                                           : std::strchr("efd", type[0])  ? code::Float
                                           : std::strchr("bhiq", type[0]) ? code::Int
                                                                          : code::UInt);
    if (read_only)
        return nb::cast(nb::ndarray<nb::ro, nb::array_api>(data, shape.size(), shape.data(), view, nullptr, dtype));
    return nb::cast(nb::ndarray<nb::array_api>(data, shape.size(), shape.data(), view, nullptr, dtype));
}

} // namespace typy
