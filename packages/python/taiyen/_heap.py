"""Heaps: opening, transactions, snapshots, undo, marks."""

import atexit
import operator
import os
import sys
import time
import warnings
import weakref
from typing import NamedTuple

from . import _core, _looking, _records
from ._containers import Array, _view
from ._errors import AddressError, BusyError, Error, ForkedError, LiveViewsError
from ._record_lists import Records

_KINDS = {"volatile": 1, "archive": 2, "snapshot": 3, "transactional": 4}
_NAMES = {number: name for name, number in _KINDS.items()}
_TYPES = {
    "bool": ("?", 1), "?": ("?", 1), "b1": ("?", 1), "int8": ("b", 1), "i1": ("b", 1), "uint8": ("B", 1), "u1": ("B", 1),
    "int16": ("h", 2), "i2": ("h", 2), "uint16": ("H", 2), "u2": ("H", 2), "int32": ("i", 4), "i4": ("i", 4),
    "uint32": ("I", 4), "u4": ("I", 4), "int64": ("q", 8), "i8": ("q", 8), "int": ("q", 8), "uint64": ("Q", 8),
    "u8": ("Q", 8), "float16": ("e", 2), "f2": ("e", 2), "float32": ("f", 4), "f4": ("f", 4), "float64": ("d", 8),
    "f8": ("d", 8), "float": ("d", 8), "complex64": ("Zf", 8), "c8": ("Zf", 8), "complex128": ("Zd", 16),
    "c16": ("Zd", 16), "complex": ("Zd", 16),
}  # fmt: skip
_TRACKING = {"automatic": 0, "kernel": 1, "signal": 2, "content": 3}
_CODECS = {"lz4": 0, "zstd": 1, "none": 2}
_open_heaps = weakref.WeakSet()


def _whole(name, number, most=2**64 - 1):
    """An option that is a number."""
    try:
        number = operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {number!r}") from None
    if not 0 <= number <= most:
        raise ValueError(f"{name} is from 0 to {most:,}, not {number:,}")
    return number


def _one_of(name, given, table):
    """An option that is one of a few names."""
    if not isinstance(given, str) or given not in table:
        raise ValueError(f"{name} is one of {', '.join(map(repr, table))}, not {given!r}")
    return table[given]


def _lengths(shape):
    """Of an array, as numpy takes them: a whole number, or some."""
    try:
        lengths = (operator.index(shape),)
    except TypeError:
        try:
            lengths = tuple(map(operator.index, shape))
        except TypeError:
            raise TypeError(f"an array's shape is a whole number or a tuple of them, not {shape!r}") from None
    if any(length < 0 for length in lengths):
        raise ValueError(f"an array's lengths are not below zero: {shape!r}")
    return lengths


def _bytes_of(path, name="path"):
    """A path as the system has it."""
    try:
        path = os.fsencode(path)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if b"\0" in path:
        raise ValueError(f"{name}: embedded null byte in {path!r}")
    return path


def _type_of(dtype):
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or dtype
    try:
        if not getattr(dtype, "isnative", True):
            raise KeyError(dtype)
        return _TYPES[str(name).lstrip("<=|")]
    except KeyError:
        raise TypeError(f"a heap has no arrays of {dtype!r}: it has booleans, whole numbers, floats and complex "
                        "numbers of the machine's byte order; records have fields of texts and times, too "
                        "(taiyen.record), and a list takes any values") from None  # fmt: skip


_LABEL_BYTES = 47  # TY_UNDO_LABEL_MAX


class Step:
    """One change that can be undone, as `Heap.history` reports it."""

    __slots__ = ("label", "time", "entries", "bytes", "undone")

    def __init__(self, label, when, entries, size, undone):
        self.label = label
        self.time = when
        self.entries = entries
        self.bytes = size
        self.undone = undone

    def __repr__(self):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.time))
        return f"<Step {self.label!r} of {when}{', undone' if self.undone else ''}>"


class Transaction(_core.TransactionBase):
    """A transaction under way: `with heap.transaction():`. Committed at the end, rolled back by an exception."""

    def is_durable(self, wait=False):
        """Whether no crash can take the transaction back; with wait, makes it so."""
        return self._heap.is_durable(self.lsn, wait=wait)


class Mark(NamedTuple):
    """A state that a heap can go back to, as `Heap.marks` reports it: a named tuple.

    name           as given to `Heap.mark`
    parent         the mark that was current when it was made, or what is left of that one's ancestors; None: none
    time           when it was made, in seconds since 1970
    changed_pages  since its parent
    copied_bytes   memory that these take
    current        whether it was made or returned to last; of those that are durable, and of the others
    durable        whether it is there in later runs
    """

    name: str
    parent: "str | None"
    time: float
    changed_pages: int
    copied_bytes: int
    current: bool
    durable: bool


def _mark_name(name):
    """As the library has it."""
    if not isinstance(name, str):
        raise TypeError(f"a mark's name is a text, not {name!r}")
    if "\0" in name:
        raise ValueError(f"a mark's name: embedded null character in {name!r}")
    return name.encode()


class Attempt(_core.AttemptBase):
    """An attempt under way: `with heap.attempt():`. Kept at the end, taken back by an exception."""

    def keep(self):
        """Ends it before its block ends: what was changed stays."""
        self._keep()

    def go_back(self):
        """Ends it before its block ends: the heap is what it was at its begin. Attempts within it end, too.

        Errors: as of `Heap.return_to`; it has not ended then.
        """
        self._heap._without_views(self._go_back)


class Heap(_core.HeapBase):
    """A heap of Python values. Made by `open` and `volatile`; closed by `close`, or at the end of a `with`."""

    def __init__(self):
        super().__init__()
        self.path = None
        self.report = {}
        self._undo_bytes = 0
        self._reported = False  # that it could not be closed

    # ---- Opening and closing.

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    def __del__(self):
        try:
            if not self.closed and self.path is not None and not self._is_parents:
                warnings.warn(f"the heap {self.path} was not closed", ResourceWarning, stacklevel=2, source=self)
                _end(self)
        except Error:
            pass

    def close(self):
        """Takes a last snapshot and closes the heap. Does nothing if it is closed.

        In a forked child it gives this process's copy of the memory up, and leaves the heap to the parent.
        Errors: LiveViewsError (`views` names them), BusyError; DiskFullError, InputOutputError: the heap stays open and
        usable.
        """
        self._without_views(self._close)

    def discard(self):
        """Closes without a snapshot: what was done since the last one, or was not committed, is gone.

        Errors: LiveViewsError.
        """
        self._without_views(self._discard)

    def views(self):
        """What keeps the heap from being closed: a text for each array and list of records that numpy arrays or memoryviews
        lead to, with where it is stored and which variables of the program's main module hold views of it.

        A notebook keeps what it has displayed: `%reset -f out` forgets that.
        """
        return _looking.views(self)

    def _without_views(self, call, *arguments):
        try:
            return call(*arguments)
        except LiveViewsError as error:
            raise _looking.refused(self, error) from None

    @property
    def kind(self):
        """ "snapshot", "transactional", "archive" or "volatile"."""
        return _NAMES.get(self._kind, "")

    @property
    def root(self):
        """The dict that leads to everything else in the heap. `heap[key]` is `heap.root[key]`."""
        return self._root

    def __getitem__(self, key):
        return self._root[key]

    def __setitem__(self, key, value):
        self._root[key] = value

    def __delitem__(self, key):
        del self._root[key]

    def __contains__(self, key):
        return key in self._root

    def __iter__(self):
        return iter(self._root)

    # ---- Durability.

    def snapshot(self):
        """Makes all of the heap durable, atomically; the number of the epoch. Other threads run while it is written.

        Errors: DiskFullError, InputOutputError: nothing is lost, and it can be tried again.
        """
        return self._snapshot()

    def transaction(self, *, wait=True):
        """A transaction of a transactional heap: `with heap.transaction(): ...`

        Committed and durable at the end of the block; rolled back by an exception. It belongs to its thread; those of
        other threads wait, so a block that waits for a thread which changes the heap (`await asyncio.to_thread`, a
        join) never ends. In a thread it belongs to its task (asyncio's, a greenlet): while that waits within the block,
        changes by other tasks of the thread are a BusyError, for they would be rolled back with it; a task that it starts
        is another one. Reads, by other tasks too, see what is not committed yet, and stores by way of arrays are a part of
        it, whoever makes them: so do not await within the block, or have an asyncio.Lock around blocks and changes.
        wait=False: the commit does not wait for the disk: ask `is_durable`. They do not nest. Outside of one, each change is
        a transaction of its own.
        """
        return Transaction(self, wait)

    def is_durable(self, lsn=0, *, wait=False):
        """Whether all transactions up to that LSN (0: all there are) are durable; with wait, makes them so."""
        return self._is_durable(lsn, wait)

    async def durable(self, lsn=0):
        """Awaits that transactions up to that LSN (0: all there are) are durable."""
        import asyncio

        await asyncio.to_thread(self._is_durable, lsn, True)

    # ---- Undo.

    def step(self, label=""):
        """One change that can be undone as a whole: `with heap.step("Move wall"): ...`. An exception takes it back.

        From a heap's first step on, each change outside of one is a step of its own. Numbers of arrays are undone where
        `Array.record` was called before they were changed. A heap has one step at a time, of all threads: what another
        thread changes meanwhile is a part of it, and taken back with it; changes by another task of the same
        thread (asyncio's, a greenlet) are a BusyError. Of a label 47 bytes of UTF-8 are kept. Not for
        transactional heaps.
        """
        if not isinstance(label, str):
            raise TypeError(f"a step's label is a text, not {label!r}")
        if "\0" in label:
            raise ValueError(f"a step's label: embedded null character in {label!r}")
        encoded = label.encode("utf-8", "replace")  # half of a pair of surrogates is no UTF-8
        label = encoded[:_LABEL_BYTES].decode("utf-8", "ignore")
        return _core.StepBase(self, label, self._undo_bytes)

    def undo(self):
        """Takes the last step back that is not undone yet. Errors: NotFoundError: there is none; LiveViewsError."""
        self._without_views(self._undo, True)

    def redo(self):
        """Does the step again that was undone last. A step that has changed something since ends that; one that was taken
        back does not. Errors: NotFoundError: there is none; LiveViewsError."""
        self._without_views(self._undo, False)

    def history(self):
        """Steps, as in a menu from bottom to top: what would be redone last first."""
        return [Step(*step) for step in self._history()]

    def clear_history(self):
        """Forgets all steps: what is undone stays undone. Changes are no steps any more, until the next one is begun.

        The next step makes a history of `undo_bytes`, as given to `open`. Errors: BusyError, in a step.
        """
        self._clear_history()

    # ---- Going back.

    def attempt(self):
        """Something that is only tried: `with heap.attempt(): ...`

        An exception takes everything back that was changed in the block, and goes on; arrays, too. They can be nested.
        `with heap.attempt() as tried: ...` has `tried.go_back()` and `tried.keep()`, which end it earlier. On a
        transactional heap there can be transactions within it; to go back is another one, durable at the end, and what was
        committed stays where the process dies within the attempt. What other
        threads change meanwhile is a part of it; attempts of theirs, and changes by another task of the same thread
        (asyncio's, a greenlet), are a BusyError. Not within a step or transaction; not of archive heaps.
        Where an exception cannot go back (LiveViewsError, see `return_to`; DiskFullError), that is raised, and the mark
        stays: call `tried.go_back()` later.
        """
        return Attempt(self)

    def mark(self, name, *, durable=False):
        """Marks the state that the heap has now: `return_to` goes there, as often as you like, until `drop_mark`.

        Marks form a tree: the one that was made or returned to last is the parent of the next. They end with the
        process, and are in no snapshot; but for durable ones, a tree of their own, which later runs find:
        `taiyen.open(path, readonly=True, mark=name)` shows the heap as it was there, and `taiyen return FILE MARK` goes
        there. A mark copies what has changed since its parent; the first one of a volatile heap, all that this uses.
        Waits for transactions of other threads. A name has 1 to 63 bytes of UTF-8.
        Errors: ExistsError; BusyError, in a step or transaction; UnsupportedError, of an archive heap, and a durable one of
        a volatile heap; DiskFullError, InputOutputError, of a durable one.
        """
        self._mark(_mark_name(name), bool(durable))

    def return_to(self, name):
        """The heap becomes as it was at the mark, in place; what has changed since the current mark is gone, unless it is
        marked first. History and arrays go, too: numpy sees the numbers of then.

        What was taken out of the heap stays right if the mark has it, too; else its use is a DeletedError, as after an
        undo. On a transactional heap a return is a transaction, durable at the end, and waits for those of other threads.
        No other thread may compute with arrays of the heap meanwhile.
        Errors: NotFoundError; BusyError, in a step or transaction; LiveViewsError: there are views of arrays that were
        made after the mark, or of any where the mark is on another branch or has a history of undo; or of records;
        UnsupportedError: a durable mark of another run.
        """
        self._without_views(self._return_to, _mark_name(name))

    def drop_mark(self, name):
        """Forgets a mark; the heap stays as it is. Errors: NotFoundError."""
        self._drop_mark(_mark_name(name))

    def marks(self):
        """The heap's marks, in the order of their names: a list of `Mark`."""
        return [Mark(*mark) for mark in self._marks()]

    def branch(self, path):
        """Makes a snapshot heap of its own in files under this path, with what the heap has now. Both go on by themselves.

        In a process that was forked from the one that has a snapshot heap open, too: `heap.branch(path)`, then
        `taiyen.open(path)` goes on from there. Call it before the parent takes snapshots. Of heaps that are open for
        reading, or at a mark, too. Other threads wait meanwhile.
        Errors: ExistsError; BusyError, in a step or transaction, or in such a process when the parent has gone on;
        UnsupportedError, of volatile and archive heaps; DiskFullError, InputOutputError.
        """
        self._branch(_bytes_of(path))

    def revert(self):
        """The heap becomes as its last snapshot left it, in place. Of snapshot heaps. Marks stay.

        Errors: NotFoundError: there is none; BusyError, in a step; LiveViewsError; DamagedError, InputOutputError: nothing
        has changed.
        """
        self._without_views(self._revert)

    def refresh(self, wait=0):
        """A heap that was opened with follow=True or shared=True shows the newest state of its writers, and waits so many
        seconds for one if there is none. Returns whether it shows another one now.

        Until then nothing that a follower shows changes, and its iterations that were under way end with a RuntimeError then.
        A shared heap shows the newest state with each read anyway: there it is for the wait; False within a transaction.
        Objects that the new state does not have, or not where they were, are gone (DeletedError): look them up again. Other
        threads go on meanwhile, and see the new state from then on.
        Errors: LiveViewsError; ExpiredError: the process was stopped, and what it read since the last refresh may have been
        a mixture; the heap shows the newest state all the same.
        """
        return self._without_views(self._refresh, float(wait))

    # ---- Arrays.

    def array(self, name, shape=None, dtype="f8"):
        """The array `root[name]`, of that shape and type; made of zeros if it is not there.

        Returns numpy's array of the heap's memory, without a copy (without numpy: a memoryview); of a shared heap the Array,
        whose items are copies. shape None: the array has to be there. In a transactional heap, change it within transactions.
        """
        missing = object()
        found = self.root.get(name, missing)
        if found is missing:
            if shape is None:
                raise KeyError(name)
            _core.new_array(self.root, name, *_type_of(dtype), _lengths(shape))
            found = self.root[name]
        if not isinstance(found, Array):
            raise TypeError(f"root[{name!r}] is no array, but a {type(found).__name__}")
        if shape is not None:
            if found.shape != _lengths(shape) or found.format != _type_of(dtype)[0]:
                raise ValueError(f"the array {name!r} is there already, as {found!r}")
        return found if self._shared else _view(found)

    def records(self, name, of):
        """The list of records `root[name]`, of that class; made without any if it is not there. Its rows are of that class.

        Errors: TypeError: it is something else.
        """
        found = self.root.setdefault(name, _records.records(of))
        if not isinstance(found, Records) or not found._use(of):
            raise TypeError(f"root[{name!r}] has no records of {of.__name__}, but is a {type(found).__name__}")
        return found

    # ---- Looking.

    def stats(self):
        """Figures of the heap, by name: bytes and blocks, and what of the pages in use is live (page_efficiency)."""
        return self._stats()

    def collect(self):
        """Frees containers that lead to each other in a ring, and that nothing else leads to; how many.

        Also what was deleted and held by a process that was killed.
        """
        return self._collect()

    def verify(self):
        """Checks all structures of the heap and of its values; a list of texts, empty if all is sound."""
        return self._verify()

    def map(self):
        """A picture of the heap's memory, as SVG: what is live, free, and the heap's own."""
        from ._map import picture

        return picture(self._extents())

    def _repr_svg_(self):
        return None if self.closed else self.map()

    def __repr__(self):
        where = self.path if self.path is not None else hex(id(self))
        return f"<taiyen.Heap {self.kind} {where}{', closed' if self.closed else ''}>"

    def pack(self, path, *, codec="lz4"):
        """Writes the heap as one compressed file, which must not be there yet; its bytes. codec: lz4, zstd, none.

        `unpack` makes a heap of it again. Errors: ExistsError, DiskFullError, UnsupportedError.
        """
        if not hasattr(_core, "unpack"):
            raise NotImplementedError("this package was built without pack: install liblz4-dev and libzstd-dev, then "
                                      "install the package again")  # fmt: skip
        return self._pack(_bytes_of(path), _one_of("codec", codec, _CODECS))


def _mode(create, readonly, follow, shared):
    if follow:
        if readonly or create or shared:
            raise ValueError("follow=True reads a heap that is there: leave readonly, create and shared out")
        return 5
    if shared and readonly:
        raise ValueError("shared=True is for processes that write: readers follow the heap (follow=True)")
    if readonly not in (False, True, "copy"):
        raise ValueError('readonly is False, True or "copy"')
    if readonly:
        return 4 if readonly == "copy" else 3
    if create not in (None, False, True):
        raise ValueError(f"create is None, False or True, not {create!r}")
    return 0 if create is None else 2 if create else 1


def _kind_of(kind):
    if kind is not None and (kind not in _KINDS or kind == "volatile"):
        raise ValueError(f'kind is "snapshot", "transactional" or "archive", not {kind!r}')
    return _KINDS.get(kind, 0)


def open(path, *, kind=None, create=None, readonly=False, follow=False, shared=False, mark=None, pickle=False, limit=0, memory=0,
         undo_bytes=0, **options):  # fmt: skip
    """Opens the heap at a path, or makes it.

    kind      "snapshot" (of a new heap, if nothing is said), "transactional" or "archive"; None: what is there.
    create    None: opens, or creates; False: it must be there (NotFoundError); True: it must not (ExistsError).
    readonly  True: changes no file; "copy": the same, also while another process writes to it: a copy of that moment.
    follow    True: reads it while another process writes to it, at the state that was newest then, or at the last
              `Heap.refresh`. Any number of processes can; a change of a page costs each 4 KiB at most.
    shared    True: several processes, each with shared=True, write to it, one transaction at a time; of kind
              "transactional". They are to each other as threads: each read and each change begins on the newest state; what
              belongs together is done in a transaction. No views of its arrays, no marks, no snapshots in other processes
              than the one that writes its log; a transaction changes 2 MiB at most.
    mark      with readonly: a durable mark (`Heap.mark`), at which the heap is shown; None: as it is.
    pickle    objects of other types are pickled, and unpickled: for files that you trust. Each look gives a copy: change
              it and store it again.
    limit     bytes that a new heap can grow to at most; 0: 64 GiB. It costs address space, not memory, nor disk: the file
              has that size (ls), and takes room for what is in it (du).
    memory    bytes of private copies of pages that the heap keeps; 0: as many as fit.
    undo_bytes  what the history of undo holds; 0: 16 MiB. Of a heap that has steps, from `Heap.clear_history` on, which a
              UserWarning says where it has another size.
    options   journal, log (paths); log_bytes of a new transactional heap, which take that much disk at once: 0: 256 MiB;
              tracking ("automatic", "kernel", "signal", "content"): as in the C API.
              snapshot_dirty_bytes, snapshot_interval_ms: of transactional heaps, whose log is cut by snapshots, looked
              at after commits. A snapshot heap takes none by itself: call `Heap.snapshot`, from a thread if you like.

    Returns a Heap; `report` says what the open found. A process has a heap open once: `taiyen.opened(path) or
    taiyen.open(path)`. In a forked child, its copies of the parent's heaps go first, but for those with views.
    Errors: NotFoundError, ExistsError, BusyError (open elsewhere, or here), FormatError, DamagedError, MismatchError,
    DeniedError, AddressError, DiskFullError.
    """
    unknown = options.keys() - {"journal", "log", "log_bytes", "snapshot_dirty_bytes", "snapshot_interval_ms", "tracking"}
    if unknown:
        raise TypeError(f"open() got an unexpected keyword argument {min(unknown)!r}")
    path = os.path.abspath(os.fsdecode(path))
    numbers = dict(limit=limit, memory=memory, undo_bytes=undo_bytes)
    for name, given in options.items():
        if given is None:
            continue
        if name in ("journal", "log"):
            options[name] = _bytes_of(given, name)
        elif name == "tracking":
            options[name] = _one_of(name, given, _TRACKING)
        else:
            numbers[name] = given
    for name, given in numbers.items():
        options[name] = _whole(name, given, 2**32 - 1 if name == "snapshot_interval_ms" else 2**64 - 1)
    options["pickle"] = bool(pickle)
    options["shared"] = bool(shared)
    if shared and kind not in (None, "transactional"):
        raise ValueError(f'shared=True is for heaps of kind "transactional", not {kind!r}')
    if mark is not None:
        if not readonly:
            raise ValueError("mark is for readonly=True and readonly=\"copy\": at a mark a heap can be read")
        options["mark"] = _mark_name(mark)
    heap = Heap()
    arguments = (_bytes_of(path), _kind_of("transactional" if shared else kind), _mode(create, readonly, follow, shared),
                 options)  # fmt: skip
    _give_up_parents()
    try:
        heap.report = heap._open(*arguments)
    except (AddressError, BusyError) as error:
        _refuse_open_here(path, error)
        raise
    heap.path = path
    heap._undo_bytes = options["undo_bytes"]
    try:
        for name in ("snapshot_interval_ms", "snapshot_dirty_bytes"):
            if options.get(name) and heap.kind != "transactional":
                raise ValueError(f"{name} is for transactional heaps, and {path} is of kind {heap.kind}: call snapshot() "
                                 "as often as you need it")  # fmt: skip
        _records.check(heap)
        if heap._keeps_history:
            warnings.warn(f"undo_bytes is of a new history, and the one of {path} has steps: it stays as it is until "
                          "Heap.clear_history()", stacklevel=2)  # fmt: skip
    except BaseException:
        heap.discard()
        raise
    _open_heaps.add(heap)
    return heap


def opened(path):
    """The Heap that this process has open at a path; None: it has none. `taiyen.opened(path) or taiyen.open(path)` is for what
    may run twice, as a notebook's cell."""
    path = os.path.abspath(os.fsdecode(path))
    for heap in list(_open_heaps):
        if not heap.closed and not heap._is_parents and _is_same(heap.path, path):
            return heap
    return None


def _is_same(path, other):
    try:
        return path == other or os.path.samefile(path, other)
    except OSError:
        return False


def _refuse_open_here(path, error):
    if opened(path) is not None:
        raise BusyError(f"cannot open {path}: this process has it open already; taiyen.opened(path) is that heap: use it, or "
                        "close it first", error.status, path, "use taiyen.opened(path), or close that first") from None  # fmt: skip
    for heap in list(_open_heaps):
        if heap._is_parents and _is_same(heap.path, path):
            raise BusyError(f"cannot open {path}: this process is a fork's child, and has arrays that lead into the parent's heap: "
                            f"{'; '.join(_looking.views(heap))}; delete them first", error.status, path,
                            "delete the arrays and memoryviews that lead into it first") from None  # fmt: skip


def _give_up_parents():
    """In a forked child: the parent's heaps are copies of its memory, which take the addresses that an open needs."""
    for heap in list(_open_heaps):
        if heap._is_parents and not heap._views:
            heap.discard()


def volatile(*, limit=0, pickle=False):
    """A heap without files: ordinary memory, with the same values, arrays and undo. Gone when it is closed."""
    heap = Heap()
    heap._volatile(_whole("limit", limit), bool(pickle))
    return heap


def info(path):
    """What the files of a heap say, without opening it: kind, sizes, whether it was closed, what an open would do."""
    return _core.info(_bytes_of(path))


def unpack(packed, path, *, kind=None):
    """Makes a heap at a path from a file that `Heap.pack` wrote; a sentence that says what was done."""
    if not hasattr(_core, "unpack"):
        raise NotImplementedError("this package was built without pack: install liblz4-dev and libzstd-dev, then "
                                  "install the package again")  # fmt: skip
    return _core.unpack(_bytes_of(packed, "packed"), _bytes_of(path), _kind_of(kind))


def _end(heap):
    """Closes a heap that nobody will use any more, or makes durable what can be: only stderr is there to report to."""
    if heap._is_parents:
        return
    try:
        heap.close()
        return
    except ForkedError:  # the parent's
        return
    except Error:
        pass
    lost = None
    try:
        if heap.readonly:
            return
        if heap.kind != "transactional":
            heap.snapshot()  # a thread that still runs has views
            return
        heap.is_durable(wait=True)
        if heap._in_transaction:  # a generator's, say, that nobody has ended: this thread's changes were parts of it
            lost = "what was changed in a transaction that nobody has ended is lost"
    except Error as error:
        since = "the last snapshot" if heap.kind != "transactional" else "the last durable transaction"
        lost = f"what was changed since {since} is lost: {error}"
    if lost and not heap._reported:
        heap._reported = True
        print(f"taiyen: the heap {heap.path} could not be closed, and {lost}", file=sys.stderr)


@atexit.register
def _close_all():
    for heap in list(_open_heaps):
        if not heap.closed:
            _end(heap)
            heap._end_at_exit()
