// Exceptions: one class a status, made by taiyen/_errors.py, with the text of the library.
#include "core.hpp"

#include <cstring>
#include <new>
#include <stdexcept>

namespace typy {

namespace {

PyObject *error_classes = nullptr; // a dict: status to class

// A text of the library, whose names of files may be any bytes, or be cut off.
ref text_of(const char *bytes, const char *errors) {
    return ref(PyUnicode_DecodeUTF8(bytes, static_cast<Py_ssize_t>(std::strlen(bytes)), errors));
}

// Makes the exception: class(text, status name, path, remedy, errno). One that there is already stays.
void raise(int status, const char *text, const char *name, const char *path, const char *remedy, int system_error) {
    if (PyErr_Occurred())
        return;
    const ref number(PyLong_FromLong(status));
    PyObject *type = number && error_classes ? PyDict_GetItemWithError(error_classes, number.get()) : nullptr;
    if (!type) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, text);
        return;
    }
    const ref message(text_of(text, "replace")), where(text_of(path, "surrogateescape")),
        help(text_of(remedy, "replace"));
    if (!message || !where || !help)
        return;
    const ref made(PyObject_CallFunction(type, "OsOOi", message.get(), name, *path ? where.get() : Py_None,
                                         *remedy ? help.get() : Py_None, system_error));
    if (made)
        PyErr_SetObject(type, made.get());
}

// No disk is full: what is to be undone is more than the history holds.
bool is_of_history(const ty_error &error) {
    return error.status == TY_E_SPACE && !error.system_error && !*error.path &&
           std::strstr(error.operation, "the buffer");
}

} // namespace

int raise_last() {
    if (PyErr_Occurred())
        return -1;
    ty_error error;
    ty_error_detail(&error);
    if (is_of_history(error))
        return raise_own(status_history_full, (std::string("cannot ") + error.operation).c_str(), error.remedy);
    raise(error.status, ty_error_text(), ty_status_name(error.status), error.path, error.remedy, error.system_error);
    return -1;
}

int raise_own(int status, const char *what, const char *remedy) {
    const std::string text = std::string(what) + "; " + remedy;
    raise(status, text.c_str(), status > 0 ? ty_status_name(static_cast<ty_status>(status)) : "", "", remedy, 0);
    return -1;
}

int raise_caught(const std::exception &caught) {
    if (PyErr_Occurred())
        return -1;
    if (dynamic_cast<const std::bad_alloc *>(&caught) || dynamic_cast<const std::length_error *>(&caught))
        PyErr_NoMemory();
    else
        PyErr_SetString(PyExc_RuntimeError, caught.what());
    return -1;
}

PyObject *set_error_classes(PyObject *classes) {
    const ref before(std::exchange(error_classes, Py_NewRef(classes)));
    Py_RETURN_NONE;
}

} // namespace typy
