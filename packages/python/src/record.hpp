// Records: structs of one layout in a heap, and Python's classes for them.
//
// A *layout* is made of a class once (taiyen/_records.py), and stays. A *row* is Python's object for one record in a
// heap: it has no bytes of its own, but the number of its record.
#ifndef TAIYEN_PYTHON_RECORD_HPP
#define TAIYEN_PYTHON_RECORD_HPP

#include "core.hpp"

#include <functional>

namespace typy {

struct kind_of_field; // layout.cpp

struct field {
    ref name;
    std::string letter; // taiyen/_records.py lists which there are
    std::size_t offset;
    std::size_t size;
    const kind_of_field *kind = nullptr;
};

// Classes of one name with the same fields have one text: to a heap they are one layout.
struct layout {
    Py_ssize_t number; // layout_numbered()
    std::string name;
    std::string text;   // as the heap keeps it
    std::string format; // as the buffer protocol has it
    std::size_t size;
    std::vector<field> fields;
    PyTypeObject *plain = nullptr; // Python's class
    PyTypeObject *row = nullptr;   // the class of rows, derived from it
    layout *newer = nullptr;       // of the class that was defined in its place, with the same fields
};

// ---- Layouts (layout.cpp).

// That of the class that is in its place now.
const layout *newest(const layout *of);
inline bool are_same(const layout *a, const layout *b) {
    return a == b || (a && b && a->text == b->text);
}
// Of a class of records or rows; NULL: it is none.
const layout *layout_of(PyTypeObject *type);
// Of a list that has records of one class, and nothing else; NULL: it has not.
const layout *layout_of_all(PyObject *list);
// Of a list that says which records it is for (taiyen.records); NULL: it does not.
const layout *layout_of_list(PyObject *list);
// Of records of a heap. NULL with an exception: the program's class differs.
const layout *layout_in(heap &of, value records);

// Where a record is to be stored, for texts of errors.
using place_text = std::function<std::string()>;
// A field's bytes. False: there is an exception.
bool pack_field(const field &one, PyObject *object, char *bytes, const place_text &where);
PyObject *load_field(const field &one, const char *bytes);
// All of a record's, of a plain one or a row. False: there is an exception.
bool pack_record(const layout &of, PyObject *object, char *bytes, const place_text &where);
bool pack_records(const layout &of, PyObject *list, std::string *bytes, const place_text &where);

// Before records of a class are stored: the layout's number in the heap, where it is kept from then on, and read by
// this class. -1 with an exception: the heap has a class of that name with other fields.
Py_ssize_t keep_layout(heap &of, const layout &layout);

// add_layout(name, text, format, size, fields, class): its number. set_row_class(number, class).
PyObject *add_layout(PyObject *, PyObject *arguments);
PyObject *set_row_class(PyObject *, PyObject *arguments);
// replace_layout(number, number): of a class that is defined again with the same fields.
PyObject *replace_layout(PyObject *, PyObject *arguments);
// By that number; NULL with an exception.
const layout *layout_numbered(Py_ssize_t number);

// ---- Records in a heap (packages/python/src/record.cpp).

// Records without one, or one of zeros. False: there is an exception.
bool make_records(heap &of, const layout &layout, bool single, value *v);
// The proxy of records, or of the one that there is.
PyObject *load_records(heap &of, value v);
// Of what load_records() gives: a plain record, or a list of them.
PyObject *plain_of_records(PyObject *loaded);
// A new proxy of records.
void start_records(proxy *p, const layout *layout);
// After a rollback, an undo or a redo: rows whose records may be others are deleted. are_others: all may be.
void look_at_rows(proxy *p, bool are_others = false);
// Where a row's record lies, or the bytes that it had when another one took its place; NULL: there is an exception.
const char *bytes_of_row(PyObject *object);
bool is_row(PyObject *object);
bool add_record_types(PyObject *module);

} // namespace typy

#endif
