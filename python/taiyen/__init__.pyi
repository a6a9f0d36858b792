from ._containers import Array as Array, Deque as Deque, Dict as Dict, List as List, Set as Set, plain as plain
from ._errors import (
    AddressError as AddressError,
    ArgumentError as ArgumentError,
    BusyError as BusyError,
    ClosedError as ClosedError,
    DamagedError as DamagedError,
    DeletedError as DeletedError,
    DeniedError as DeniedError,
    DiskFullError as DiskFullError,
    Error as Error,
    ExistsError as ExistsError,
    ForkedError as ForkedError,
    FormatError as FormatError,
    HeapFullError as HeapFullError,
    InDoubtError as InDoubtError,
    InputOutputError as InputOutputError,
    LiveViewsError as LiveViewsError,
    MismatchError as MismatchError,
    NotFoundError as NotFoundError,
    UnsupportedError as UnsupportedError,
)
from ._heap import (
    Heap as Heap,
    Step as Step,
    Transaction as Transaction,
    info as info,
    open as open,
    unpack as unpack,
    volatile as volatile,
)

__version__: str
library_version: str
