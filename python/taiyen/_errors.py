"""Exceptions: one class a status of the library. All are `taiyen.Error`; each is also what a Python program expects there.

The text says what happened, to what, and what to do. `status` is the library's name for it, `path` the file concerned,
`remedy` what to do, each "" or None where there is none.
"""


class Error(Exception):
    """Whatever a heap could not do."""

    status: str
    path: "str | None"
    remedy: "str | None"

    def __init__(self, text="", status="", path=None, remedy=None, errno=0):
        super().__init__(text)
        self.args = (text,)
        self.status = status
        self.path = path
        self.remedy = remedy
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
    """There is no such heap."""


class ExistsError(Error, FileExistsError):
    """There is such a heap already."""


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


class DeletedError(Error, ReferenceError):
    """What the object stood for was rolled back or undone, or its record was deleted."""


class ClosedError(Error, ValueError):
    """The heap is closed."""


class LiveViewsError(Error, BufferError):
    """Arrays or memoryviews lead to what would be closed or freed."""


BY_STATUS = {
    1: ArgumentError, 2: HeapFullError, 3: DiskFullError, 4: InputOutputError, 5: NotFoundError, 6: ExistsError,
    7: BusyError, 8: DeniedError, 9: AddressError, 10: FormatError, 11: DamagedError, 12: MismatchError,
    13: UnsupportedError, 14: ForkedError, 15: InDoubtError, -1: DeletedError, -2: ClosedError, -3: LiveViewsError,
}  # fmt: skip
