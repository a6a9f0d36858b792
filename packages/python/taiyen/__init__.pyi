from ._containers import (
    Array as Array,
    Deque as Deque,
    Dict as Dict,
    List as List,
    Set as Set,
    plain as plain,
)
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
    HistoryFullError as HistoryFullError,
    InDoubtError as InDoubtError,
    InputOutputError as InputOutputError,
    LiveViewsError as LiveViewsError,
    MismatchError as MismatchError,
    NotFoundError as NotFoundError,
    UnsupportedError as UnsupportedError,
)
from ._heap import (
    Attempt as Attempt,
    Heap as Heap,
    Mark as Mark,
    Step as Step,
    Transaction as Transaction,
    info as info,
    open as open,
    opened as opened,
    unpack as unpack,
    volatile as volatile,
)
from ._record_lists import Records as Records
from ._records import (
    c8 as c8,
    c16 as c16,
    dtype as dtype,
    f4 as f4,
    f8 as f8,
    i1 as i1,
    i2 as i2,
    i4 as i4,
    i8 as i8,
    record as record,
    records as records,
    text as text,
    u1 as u1,
    u2 as u2,
    u4 as u4,
    u8 as u8,
)

__version__: str
library_version: str
