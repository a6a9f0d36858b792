"""Exceptions: one class a status of the library. All are `taiyen.Error`; each is also what a Python program expects there.

The text says what happened, to what, and what to do. `status` is the library's name for it, `path` the file concerned,
`remedy` what to do, each "" or None where there is none.
"""

import re

# The library's texts name calls and options of C. What a Python program does instead: phrases first, since what is first
# here is taken.
_IN_PYTHON = {
    "ty_undo_cancel takes back what was recorded; use a larger buffer, or shorter transactions":
        "make smaller steps; or forget the history, Heap.clear_history(), and make the change before the next step, or open the "
        "heap with undo_bytes",
    "ty_undo_cancel takes it back; ty_undo_end gives up the history": "end the step by an exception, which takes it back",
    "undo is off now; ty_undo_clear switches it on again": "undo is off now; Heap.clear_history() switches it on again",
    "call ty_undo_end or ty_undo_cancel first": "end the step that is open first",
    "call ty_undo_begin first": "do it within heap.step()",
    "call ty_undo_attach first": "make a step first, heap.step()",
    "detach undo (ty_undo_detach), without history": "forget its history, Heap.clear_history(), in a program that has it open",
    "open it as a snapshot heap and call ty_undo_detach with keep_history false":
        'open it with kind="snapshot" and call Heap.clear_history()',
    "ty_undo_detach with keep_history false": "Heap.clear_history()",
    "ty_undo_detach": "Heap.clear_history()",
    "ty_undo_clear": "Heap.clear_history()",
    "commit it or roll it back first; ty_current_txn returns it": "end it first",
    "call it between ty_begin and ty_commit": "call it within heap.transaction()",
    "hand in what ty_commit_async gave": "hand in the LSN of a transaction(wait=False)",
    "unpack it elsewhere (TY_PLACE_EITHER), or close what is there": "close the heap that is there first",
    "unpack the copy where the heap lies that it was made of (TY_PLACE_SAME)":
        "unpack it in a process where the heap that it was made of is not open",
    "give TY_PLACE_OTHER with it": "unpack it with the command line's tool",
    "open it with TY_OPEN_COPY or TY_OPEN_READ_ONLY": 'open it with readonly="copy" or readonly=True',
    "ty_discard, not ty_close": "Heap.discard(), not close()",
    "ty_discard": "Heap.discard()",
    "ty_close": "Heap.close()",
    "ty_open": "taiyen.open",
    "ty_heap_create": "taiyen.volatile",
    "ty_snapshot_start": "Heap.snapshot()",
    "ty_snapshot": "Heap.snapshot()",
    "ty_rollback for a transaction that is under way": "an exception within a transaction that is under way",
    "ty_begin": "Heap.transaction()",
    "ty_mark": "Heap.mark",
    "ty_return_to": "Heap.return_to",
    "ty_each_mark": "Heap.marks()",
    "ty_pack": "Heap.pack",
    "ty_unpack": "taiyen.unpack",
    "the kind TY_TRANSACTIONAL": 'kind="transactional"',
    "the option kind TY_TRANSACTIONAL": 'kind="transactional"',
    "open the heap as TY_SNAPSHOT, then as TY_TRANSACTIONAL": 'open the heap with kind="snapshot", then with kind="transactional"',
    "with kind TY_SNAPSHOT": 'with kind="snapshot"',
    "(kind TY_SNAPSHOT)": '(kind="snapshot")',
    "kind TY_SNAPSHOT": 'kind="snapshot"',
    "TY_TRANSACTIONAL": "transactional",
    "TY_SNAPSHOT": "snapshot",
    "TY_OPEN_COPY": 'readonly="copy"',
    "TY_OPEN_FOLLOW": "follow=True",
    "TY_OPEN_READ_ONLY": "readonly=True",
}  # fmt: skip
# Not within a path: at a word's begin, and up to its end.
_C_NAME = re.compile(r"(?<![^\s(])(?:" + "|".join(map(re.escape, _IN_PYTHON)) + r"|(?:C's )?(?:ty|TY)_[a-zA-Z_]*[a-zA-Z](?:\(\))?)"
                     r"(?![\w/-]|\.\w)")  # fmt: skip


def _in_python(text):
    """A text of the library with Python's names; what only C has is said to be C's."""
    if "ty_" not in text and "TY_" not in text:
        return text
    return _C_NAME.sub(lambda name: _IN_PYTHON.get(name[0]) or "C's " + name[0].removeprefix("C's "), text)


class Error(Exception):
    """Whatever a heap could not do."""

    status: str
    path: "str | None"
    remedy: "str | None"

    def __init__(self, text="", status="", path=None, remedy=None, errno=0):
        text = _in_python(text)
        super().__init__(text)
        self.args = (text,)
        self.status = status
        self.path = path
        self.remedy = remedy and _in_python(remedy)
        if errno and isinstance(self, OSError):
            self.errno = errno

    def __str__(self):
        return str(self.args[0]) if self.args else ""

    def __reduce__(self):
        return type(self), (str(self), self.status, self.path, self.remedy, getattr(self, "errno", None) or 0)


class ArgumentError(Error, ValueError):
    """The call itself is wrong: a bad option, a wrong kind of heap, no transaction."""


class HeapFullError(Error, MemoryError):
    """The heap's limit, or the system's memory, is reached. Nothing was changed."""


class DiskFullError(Error, OSError):
    """The disk is full, or a quota is reached. Nothing is lost; make room and try again."""


class InputOutputError(Error, OSError):
    """A read, write or flush failed."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such heap, or mark."""


class ExistsError(Error, FileExistsError):
    """There is such a heap, or mark, already."""


class BusyError(Error, BlockingIOError):
    """The heap is open elsewhere, or something is under way that excludes the call."""


class DeniedError(Error, PermissionError):
    """The system, or the way in which the heap was opened, does not allow it."""


class AddressError(Error, OSError):
    """The address range that the heap needs is taken in this process."""


class FormatError(Error, ValueError):
    """Not a heap, or of a version that this library does not know."""


class DamagedError(Error, ValueError):
    """A checksum or a structure is wrong."""


class MismatchError(Error, ValueError):
    """Files that do not belong together, or a heap of another program."""


class UnsupportedError(Error, NotImplementedError):
    """This kernel, file system or kind of heap cannot do it."""


class ForkedError(Error, RuntimeError):
    """The heap belongs to the parent process."""


class InDoubtError(Error, RuntimeError):
    """A prepared transaction was neither committed nor rolled back."""


class ExpiredError(Error, RuntimeError):
    """What a heap that follows a writer has shown was overwritten, and may have been a mixture: read again."""


class DeletedError(Error, ReferenceError):
    """What the object stood for was rolled back or undone, or went by a return to a mark, or its record was deleted."""


class ClosedError(Error, ValueError):
    """The heap is closed."""


class LiveViewsError(Error, BufferError):
    """Arrays or memoryviews lead to what would be closed or freed."""


class HistoryFullError(Error, MemoryError):
    """A step, or a change outside of one, is more than the history of undo holds. Nothing was changed; older steps may
    be forgotten."""


BY_STATUS = {
    1: ArgumentError, 2: HeapFullError, 3: DiskFullError, 4: InputOutputError, 5: NotFoundError, 6: ExistsError,
    7: BusyError, 8: DeniedError, 9: AddressError, 10: FormatError, 11: DamagedError, 12: MismatchError,
    13: UnsupportedError, 14: ForkedError, 15: InDoubtError, 16: ExpiredError, -1: DeletedError, -2: ClosedError, -3: LiveViewsError,
    -4: HistoryFullError,
}  # fmt: skip
