"""The interface of the standard module `shelve`, on a heap.

>>> from taiyen import shelf
>>> with shelf.open("things.ty") as things:
...     things["tags"] = ["port"]
...     things["tags"].append("capital")  # stored, without writeback
...     things["tags"]
['port', 'capital']

A program that uses shelve runs with it, but for one that looks at a value, changes it, and counts on the shelf not to change:
values are the heap's, and what `shelve` loses of nested changes is kept here. What is stored is a copy, also of what was looked
at. With writeback=True values are plain objects, which are stored again by sync and close, as with shelve; that costs what it
costs there. An array comes out as numpy's, a copy; `shelf.heap.root` has the heap's own. What is no value of a heap is pickled,
alone, and a container with a key that no heap takes as a whole; so open files that you trust, or give pickle=False. A file of
shelve itself is none of a heap: copy it once, `new.update(old)`.
"""

import atexit
import collections
import copy
import sys
import weakref

from collections.abc import MutableMapping

from . import _heap
from ._containers import _MISSING, Array, _Proxy, plain
from ._errors import Error

__all__ = ["Shelf", "open"]

_IMMUTABLE = (str, bytes, int, float, complex, bool, type(None))
_CONTAINERS = (dict, list, tuple, set, collections.deque)
_open_shelves = weakref.WeakSet()


class _Whole:
    """A container that is pickled as one, and comes back as itself."""

    def __init__(self, container):
        self._container = container

    def __reduce__(self):
        return plain, (self._container,)


class Shelf(MutableMapping):
    """A mapping from text to values, that lives in a heap: `heap` (close it with the shelf)."""

    def __init__(self, heap, writeback=False):
        self.heap = heap
        self.writeback = writeback
        self._cache = {}  # with writeback: plain objects that are to be stored again
        _open_shelves.add(self)

    def __hash__(self):  # a mapping has none, and a weak set asks for one
        return id(self)

    def __iter__(self):
        return iter(list(self.heap.root))  # as shelve: what is iterated over may be changed

    def __len__(self):
        return len(self.heap.root)

    def __contains__(self, key):
        return key in self.heap.root

    def get(self, key, default=None):
        """The value for the key, or the default."""
        return self[key] if key in self else default

    def __getitem__(self, key):
        if key in self._cache:
            return self._cache[key]
        value = self.heap.root[_text(key)]
        if self.writeback:
            value = plain(value)
            self._keep(key, value)
        return plain(value) if isinstance(value, Array) else value

    def __setitem__(self, key, value):
        self._store(_text(key), value)
        self._keep(key, value)

    def _store(self, key, value):
        root = self.heap.root
        if isinstance(value, _Proxy) and root.get(key) is value:
            return
        value = _copied(value)
        try:
            root[key] = value
        except TypeError as refused:
            if type(value) not in _CONTAINERS:
                raise
            try:
                root[key] = _Whole(value)
            except TypeError:
                raise refused from None

    def _keep(self, key, value):
        if self.writeback and type(value) not in _IMMUTABLE:
            self._cache[key] = value
        else:
            self._cache.pop(key, None)

    def __delitem__(self, key):
        del self.heap.root[_text(key)]
        self._cache.pop(key, None)

    def pop(self, key, default=_MISSING):
        """Takes a key out, and returns what stood for it, as a plain object."""
        if default is not _MISSING and key not in self:
            return default
        value = plain(self[key])
        del self[key]
        return value

    def popitem(self):
        """Takes some pair out, as a plain object."""
        for key in self:
            return key, self.pop(key)
        raise KeyError("popitem(): the shelf is empty")

    def clear(self):
        """Takes everything out, in one change."""
        self.heap.root.clear()
        self._cache.clear()

    def sync(self):
        """Makes all durable. With writeback, values that were used are stored first."""
        if self._cache:
            try:
                self.heap.root.update(self._cache)  # in one change
            except TypeError:  # of a value that is pickled as a whole, or of one that cannot be
                for key, value in self._cache.items():
                    self._store(key, value)
            self._cache = {}
        if self.heap.kind == "transactional":
            self.heap.is_durable(wait=True)
        elif not self.heap.readonly:
            self.heap.snapshot()

    def close(self):
        """Makes all durable, and closes the heap. Does nothing if it is closed."""
        if self.heap.closed:
            return
        if not self.heap.readonly and not self.heap._is_parents:
            self.sync()
        self._cache.clear()
        self.heap.close()

    def __del__(self):
        if hasattr(self, "_cache"):
            _end(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    def __repr__(self):
        return f"<taiyen.shelf.Shelf {self.heap.path}{', closed' if self.heap.closed else ''}>"


def _end(shelf):
    """Of a shelf that nobody will close: what was kept to be stored is."""
    try:
        shelf.close()
    except Error as error:
        if shelf._cache:
            print(f"taiyen: values of the shelf {shelf.heap.path} could not be stored: {error}", file=sys.stderr)


@atexit.register
def _close_all():
    for shelf in list(_open_shelves):
        _end(shelf)


def _parts(container):
    """All that a container holds, all the way down."""
    met, left = set(), [container]
    while left:
        one = left.pop()
        if id(one) in met:
            continue
        met.add(id(one))
        for part in one.values() if type(one) is dict else one:
            yield part
            if type(part) in _CONTAINERS:
                left.append(part)


def _copied(value):
    """The value without containers of a heap."""
    if isinstance(value, _Proxy):
        return plain(value)
    if type(value) in _CONTAINERS and any(isinstance(part, _Proxy) for part in _parts(value)):
        return copy.deepcopy(value)
    return value


def _text(key):
    if not isinstance(key, str):
        raise TypeError(f"a shelf's keys are text, not {key!r}; a heap's own root takes other keys")
    return key


def open(filename, flag="c", protocol=None, writeback=False, *, pickle=True, **options):
    """Opens the shelf at a path, which is a heap.

    flag      "c": opens, or creates; "r": for reading only; "w": it must be there; "n": creates, or takes all out.
    protocol  is accepted, and not used.
    writeback  values are plain objects, and those that were used are stored again by sync and close.
    pickle    False: no pickles are written or loaded; other objects are a TypeError.
    options   of taiyen.open. kind="transactional": each change is durable at once.

    Errors: those of taiyen.open, which are OSError (so `except dbm.error` has them) and ValueError.
    """
    if flag not in ("c", "r", "w", "n"):
        raise ValueError(f"flag is one of 'r', 'w', 'c' and 'n', not {flag!r}")
    create = None if flag in "cn" else False
    heap = _heap.open(filename, pickle=pickle, create=create, readonly=flag == "r", **options)
    shelf = Shelf(heap, writeback)
    if flag == "n":
        shelf.clear()
    return shelf
