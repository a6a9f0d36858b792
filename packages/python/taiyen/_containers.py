"""Proxies of what lives in a heap: they behave as the built-in containers do.

What is stored is copied in, with all that it holds; what comes back is the heap's own, so a change of a nested value needs
no write-back. What is taken out for good (`pop`) comes back as a plain Python object. What was deleted and is still held can
be stored again.
"""

import itertools
import operator
import struct
from collections.abc import MutableMapping, MutableSequence, MutableSet
from reprlib import recursive_repr

from . import _core
from ._views import KEYS, Items, Keys, Values

_MISSING = object()


def plain(value):
    """A plain Python copy of a value of a heap, with all that it holds, also of a tuple; anything else as it is.

    `json.dumps(heap.root, default=taiyen.plain)` writes a heap as JSON.
    """
    if type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, (_Proxy, _core.RowBase)):
        return value._plain()
    return value


class _Proxy:
    """What all proxies have."""

    __slots__ = ()
    __hash__ = None

    @property
    def heap(self):
        """The heap that it lives in."""
        return self._heap()

    @property
    def is_alive(self):
        """Whether it can be used: False once it was rolled back or undone, or the heap is closed."""
        return self._is_alive()

    def __deepcopy__(self, memo):
        return self._plain()

    def __reduce__(self):
        return plain, (self._plain(),)


class Dict(_Proxy, _core.DictBase, MutableMapping):
    """A dict that lives in a heap. Keys: text, bytes, numbers, None, dates, UUIDs, and tuples of these.

    A key of a derived type (an IntEnum, numpy.int64) finds the one that it equals, and cannot be stored as a new one.
    `isinstance(it, dict)` holds, though it is no subclass: what asks so treats it as one.
    """

    __slots__ = ()
    __class__ = property(lambda self: dict)  # pandas.DataFrame would take another mapping for a list of its keys
    __class_getitem__ = classmethod(type(list[int]))
    # the fast ones, before those of MutableMapping
    get = _core.DictBase.get
    clear = _core.DictBase.clear
    popitem = _core.DictBase.popitem
    __contains__ = _core.DictBase.__contains__

    def keys(self):
        """A view of the keys, in the order in which they came."""
        return Keys(self)

    def values(self):
        """A view of the values."""
        return Values(self)

    def items(self):
        """A view of pairs of key and value."""
        return Items(self)

    def __reversed__(self):
        return self._iterate(KEYS, True)

    def pop(self, key, default=_MISSING):
        """Takes a key out, and returns what stood for it, as a plain object."""
        return self._pop(key) if default is _MISSING else self._pop(key, default)

    def setdefault(self, key, default=None):
        """What stands for the key; the default is stored first if nothing does."""
        return self._setdefault(key, default)

    def update(self, other=(), /, **more):
        """Stores all pairs of a mapping or of an iterable of pairs, in one change."""
        if other is self:
            other = ()
        if type(other) is not dict or more:
            other = dict(other, **more)
        self._update(other)

    def copy(self):
        """A plain dict with the same values, which are still the heap's."""
        return dict(self.items())

    __copy__ = copy

    def __eq__(self, other):
        if isinstance(other, Dict):
            other = other.copy()
        if not isinstance(other, dict):
            return NotImplemented
        return len(self) == len(other) and self.copy() == other

    def __or__(self, other):
        if not isinstance(other, (dict, Dict)):
            return NotImplemented
        return {**self.copy(), **other}

    def __ror__(self, other):
        if not isinstance(other, dict):
            return NotImplemented
        return {**other, **self.copy()}

    def __ior__(self, other):
        self.update(other)
        return self

    @recursive_repr("{...}")
    def __repr__(self):
        return repr(self.copy())


class List(_Proxy, _core.ListBase, MutableSequence):
    """A list that lives in a heap. `isinstance(it, list)` holds, though it is no subclass."""

    __slots__ = ()
    __class__ = property(lambda self: list)  # as of Dict
    __class_getitem__ = classmethod(type(list[int]))
    _built_in = "list"  # as its texts call it
    append = _core.ListBase.append
    extend = _core.ListBase.extend
    insert = _core.ListBase.insert
    clear = _core.ListBase.clear
    remove = _core.ListBase.remove
    reverse = _core.ListBase.reverse
    count = _core.ListBase.count
    __iter__ = _core.ListBase.__iter__
    __reversed__ = _core.ListBase.__reversed__

    def pop(self, index=-1):
        """Takes an item out, as a plain object."""
        return self._pop(index)

    def index(self, value, start=0, stop=None):
        """The number of the first item that equals the value."""
        number = self._find(value, slice(start, stop))
        if number < 0:
            raise ValueError(f"{value!r} is not in {self._built_in}")
        return number

    def __contains__(self, value):
        return self._find(value, slice(None)) >= 0

    def sort(self, *, key=None, reverse=False):
        """Sorts the items; those that are equal keep their order. In one change: the key is called within it."""
        self._sort(key, reverse)

    def copy(self):
        """A plain list of the same items, which are still the heap's."""
        return self[:]

    __copy__ = copy

    def __add__(self, other):
        return self[:] + list(other) if isinstance(other, (list, List)) else NotImplemented

    def __radd__(self, other):
        return other + self[:] if isinstance(other, list) else NotImplemented

    def __mul__(self, times):
        try:
            return self[:] * operator.index(times)
        except TypeError:
            return NotImplemented

    __rmul__ = __mul__

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __imul__(self, times):
        times = operator.index(times)
        if times <= 0:
            self.clear()
        else:
            self._repeat(times)
        return self

    def _compare(self, other, operation):
        if not isinstance(other, (list, List)):
            return NotImplemented
        items = self[:]
        return getattr(items, operation)(items if other is self else other[:])

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    @recursive_repr("[...]")
    def __repr__(self):
        return repr(self[:])


_ERASES, _ADDS, _TOGGLES = range(3)  # what _change does with keys


class Set(_Proxy, _core.SetBase, MutableSet):
    """A set that lives in a heap. What is in it: as the keys of a Dict. It keeps the order in which they came."""

    __slots__ = ()
    __class_getitem__ = classmethod(type(list[int]))
    add = _core.SetBase.add
    clear = _core.SetBase.clear
    pop = _core.SetBase.pop
    __contains__ = _core.SetBase.__contains__

    @classmethod
    def _from_iterable(cls, items):
        return set(items)

    def discard(self, key):
        """Takes a key out if it is there."""
        self._take(key)

    def remove(self, key):
        """Takes a key out; KeyError if it is not there."""
        if not self._take(key):
            raise KeyError(key)

    def copy(self):
        """A plain set."""
        return set(self)

    __copy__ = copy

    def update(self, *others):
        """Puts all keys of the others in, in one change."""
        self._change([key for other in others for key in other], _ADDS)

    def difference_update(self, *others):
        """Takes all keys of the others out, in one change."""
        if any(other is self for other in others):
            self.clear()
        else:
            self._change([key for other in others for key in other], _ERASES)

    def intersection_update(self, *others):
        """Keeps what is in all the others, too; in one change."""
        others = [other for other in others if other is not self]
        if others:
            self._keep(set(others[0]).intersection(*others[1:]))

    def symmetric_difference_update(self, other):
        """Keeps what is in one of the two alone; in one change."""
        if other is self:
            self.clear()
        else:
            self._change(list(set(other)), _TOGGLES)

    def union(self, *others):
        """A plain set of what is here or in one of the others."""
        return set(self).union(*others)

    def intersection(self, *others):
        """A plain set of what is here and in all the others."""
        return set(self).intersection(*others)

    def difference(self, *others):
        """A plain set of what is here and in none of the others."""
        return set(self).difference(*others)

    def symmetric_difference(self, other):
        """A plain set of what is in one of the two alone."""
        return set(self).symmetric_difference(other)

    def issubset(self, other):
        """Whether all keys are in the other."""
        return set(self).issubset(other)

    def issuperset(self, other):
        """Whether all keys of the other are here."""
        return set(self).issuperset(other)

    def __eq__(self, other):
        return set(self) == set(other) if isinstance(other, (set, frozenset, Set)) else NotImplemented

    # As the built-in's: of sets alone, and the result is of the left one's type.
    def _join(self, other, operation):
        if not isinstance(other, (set, frozenset, Set)):
            return NotImplemented
        return getattr(set(self), operation)(set(other))

    def _join_after(self, other, operation):
        if not isinstance(other, (set, frozenset, Set)):
            return NotImplemented
        return getattr(type(other), operation)(other, set(self))

    def __or__(self, other):
        return self._join(other, "__or__")

    def __and__(self, other):
        return self._join(other, "__and__")

    def __sub__(self, other):
        return self._join(other, "__sub__")

    def __xor__(self, other):
        return self._join(other, "__xor__")

    def __ror__(self, other):
        return self._join_after(other, "__or__")

    def __rand__(self, other):
        return self._join_after(other, "__and__")

    def __rsub__(self, other):
        return self._join_after(other, "__sub__")

    def __rxor__(self, other):
        return self._join_after(other, "__xor__")

    def _join_in_place(self, other, method):
        if not isinstance(other, (set, frozenset, Set)):
            return NotImplemented
        method(other)
        return self

    def __ior__(self, other):
        return self._join_in_place(other, self.update)

    def __iand__(self, other):
        return self._join_in_place(other, self.intersection_update)

    def __isub__(self, other):
        return self._join_in_place(other, self.difference_update)

    def __ixor__(self, other):
        return self._join_in_place(other, self.symmetric_difference_update)

    def __repr__(self):
        return repr(set(self))


class Deque(_Proxy, _core.DequeBase, MutableSequence):
    """A deque that lives in a heap: quick at both ends. It has no maxlen: one with that is refused with a TypeError."""

    __slots__ = ()
    __class_getitem__ = classmethod(type(list[int]))
    _built_in = "deque"
    append = _core.DequeBase.append
    appendleft = _core.DequeBase.appendleft
    popleft = _core.DequeBase.popleft
    insert = _core.DequeBase.insert
    reverse = _core.DequeBase.reverse
    clear = _core.DequeBase.clear
    __iter__ = _core.DequeBase.__iter__
    __reversed__ = _core.DequeBase.__reversed__
    maxlen = None
    index = List.index
    count = _core.DequeBase.count
    remove = _core.DequeBase.remove
    __contains__ = List.__contains__

    def pop(self):
        """Takes the last item out, as a plain object."""
        return _core.DequeBase.pop(self)

    def extend(self, items):
        """Adds all items after the last, in one change."""
        self._extend([one for one in items], False)  # not list(): its length hint is not believed

    def extendleft(self, items):
        """Adds all items before the first, one after the other; in one change."""
        self._extend([one for one in items], True)

    def copy(self):
        """A plain deque of the same items, which are still the heap's."""
        from collections import deque

        return deque(self)

    __copy__ = copy

    def __add__(self, other):
        from collections import deque

        return self.copy() + deque(other) if isinstance(other, (deque, Deque)) else NotImplemented

    def __radd__(self, other):
        from collections import deque

        return other + self.copy() if isinstance(other, deque) else NotImplemented

    def __mul__(self, times):
        try:
            return self.copy() * operator.index(times)
        except TypeError:
            return NotImplemented

    __rmul__ = __mul__
    __imul__ = List.__imul__

    def __iadd__(self, other):
        self.extend(other)
        return self

    def _compare(self, other, operation):
        from collections import deque

        if not isinstance(other, (deque, Deque)):
            return NotImplemented
        items = list(self)
        return getattr(items, operation)(items if other is self else list(other))

    __eq__, __lt__, __le__, __gt__, __ge__ = List.__eq__, List.__lt__, List.__le__, List.__gt__, List.__ge__

    @recursive_repr("deque([...])")
    def __repr__(self):
        return f"deque({list(self)!r})"


class Array(_Proxy, _core.ArrayBase):
    """Numbers side by side in a heap, with the buffer protocol: numpy and memoryview use them where they lie.

    A view of an array keeps its heap open: `close` raises LiveViewsError (a BufferError) while there is one.
    In a shared heap there are no views (BufferError): items and slices are copies, and an assignment to some of them is one
    change, which copies the whole array.
    """

    __slots__ = ()

    def numpy(self):
        """A numpy array of the same memory, without a copy; of a heap open for reading only, a read-only one."""
        import numpy

        return numpy.asarray(memoryview(self))  # not of self: numpy takes a refusal for a row of numbers

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array(_view(self), dtype, copy=copy)

    @property
    def dtype(self):
        """numpy's type of the numbers; `format` is its letter, without numpy."""
        import numpy

        return numpy.dtype(_NUMPY_TYPES.get(self.format, self.format))

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __getitem__(self, index):
        return _view(self)[index]

    def __setitem__(self, index, value):
        if not self.heap._shared:
            _view(self)[index] = value
        elif self.heap._in_transaction:
            numbers = _copied(self)
            numbers[index] = value
            self._copy_from(numbers)
        else:
            with self.heap.transaction():
                self[index] = value

    def __iter__(self):
        return iter(_view(self))

    def tolist(self):
        """Nested lists of the numbers."""
        data = bytearray(self.nbytes)
        self._copy_into(data)
        if self.format not in _UNKNOWN_TO_VIEWS:
            return _nested(iter(memoryview(data).cast(self.format).tolist()), self.shape)
        numbers = struct.unpack(f"={self.nbytes // struct.calcsize(self.format[-1])}{self.format[-1]}", data)
        if self.format[0] == "Z":
            numbers = map(complex, numbers[::2], numbers[1::2])
        return _nested(iter(numbers), self.shape)

    def __dlpack__(self, **options):
        return _core.dlpack(memoryview(self), self.format).__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0  # the processor's memory

    def __eq__(self, other):
        if not isinstance(other, Array):
            return NotImplemented
        if self.heap._shared or other.heap._shared or not _UNKNOWN_TO_VIEWS.isdisjoint((self.format, other.format)):
            return self.shape == other.shape and self.tolist() == other.tolist()
        return memoryview(self) == memoryview(other)

    def __repr__(self):
        return f"<taiyen.Array {self.format} {'x'.join(map(str, self.shape))}>"


_NUMPY_TYPES = {"q": "i8", "Q": "u8", "Zf": "c8", "Zd": "c16"}  # where they are not the letters of arrays
_UNKNOWN_TO_VIEWS = frozenset(("e", "Zf", "Zd"))  # a memoryview neither lists nor compares them


def _nested(numbers, shape):
    if len(shape) == 1:
        return list(itertools.islice(numbers, shape[0]))
    return [_nested(numbers, shape[1:]) for _ in range(shape[0])] if shape else next(numbers)


def _view(array):
    if array.heap._shared:
        return _copied(array)
    try:
        return array.numpy()
    except ImportError:
        return memoryview(array)


def _copied(array):
    data = bytearray(array.nbytes)
    array._copy_into(data)
    try:
        import numpy
    except ImportError:
        return memoryview(data).cast(array.format, array.shape)
    return numpy.frombuffer(data, array.dtype).reshape(array.shape)
