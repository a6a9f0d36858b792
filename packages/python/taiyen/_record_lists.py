"""Lists of records of a heap."""

import operator
import sys
from collections.abc import MutableSequence

from . import _core, _records
from ._containers import List, _Proxy


class Records(_Proxy, _core.RecordsBase, MutableSequence):
    """A list of records of one class that lives in a heap: C structs side by side, which numpy uses where they lie.

    Items are rows: `records[5].lat = 1.0` stores to the heap. A row stays with its record when others come or go before
    it, and raises DeletedError when its own is deleted, and when what moved or replaced records is taken back by an undo or
    a rollback. One that another record takes the place of (`records[5] = other`) keeps what it was, to be read and stored
    again, as an item of a list does: so swaps, sorted() and random.shuffle do what they do with a list. While there are
    views (arrays, memoryviews), records cannot become more or fewer: LiveViewsError, a BufferError.
    """

    __slots__ = ()
    _built_in = "list"
    __getitem__ = _core.RecordsBase.__getitem__

    def numpy(self):
        """A structured numpy array of the same memory, without a copy; of a heap open for reading only, a read-only one."""
        import numpy

        return numpy.asarray(memoryview(self)).view(_records.dtype(self.of))

    def __setitem__(self, index, value):
        if not isinstance(index, slice):
            self._set(operator.index(index), value)
            return
        self._replace(index, [one for one in value])  # its length hint is not believed

    def __delitem__(self, index):
        if not isinstance(index, slice):
            self._erase(index)
            return
        self._erase_slice(index)

    def append(self, value):
        """Adds a record after the last."""
        self._insert(sys.maxsize, [value])

    def insert(self, index, value):
        """Puts a record before that one."""
        self._insert(index, [value])

    def extend(self, items):
        """Adds all records, in one change: also those of a structured numpy array whose dtype is taiyen.dtype(of)."""
        if hasattr(items, "dtype"):
            import numpy

            if items.dtype != _records.dtype(self.of):
                raise TypeError(f"an array of {items.dtype} has no records of {self.of.__name__}: make one of "
                                f"{_records.dtype(self.of)}")  # fmt: skip
            self._append_bytes(numpy.ascontiguousarray(items).view("u1"))
        else:
            self._insert(sys.maxsize, [one for one in items])

    __iadd__ = List.__iadd__

    def resize(self, size):
        """Makes it so many: takes the last ones out, or adds some of zeros."""
        self._resize(size)

    def clear(self):
        """Takes all out."""
        self._resize(0)

    def pop(self, index=-1):
        """Takes a record out, as a plain one."""
        return self._pop(index)

    def sort(self, *, key=None, reverse=False):
        """Sorts the records by a key; those that are equal keep their order. Rows stay with their records."""
        self._sort(key, reverse)

    def reverse(self):
        """Turns the order round."""
        _core.RecordsBase.reverse(self)

    def remove(self, value):
        """Takes the first record out that equals the value."""
        _core.RecordsBase.remove(self, value)

    def count(self, value):
        """How many records equal the value."""
        return _core.RecordsBase.count(self, value)

    index, copy, __copy__ = List.index, List.copy, List.__copy__
    __contains__ = List.__contains__

    def __eq__(self, other):
        if not isinstance(other, (list, List, Records)):
            return NotImplemented
        return self[:] == other[:]

    def __repr__(self):
        return repr(self[:])
