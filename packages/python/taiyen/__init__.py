"""Taiyen: Python objects and arrays that live in a durable heap.

>>> import taiyen
>>> heap = taiyen.volatile()  # taiyen.open("atlas.ty") for one in a file
>>> heap.root["cities"] = {"Lisbon": {"lat": 38.72, "tags": ["port"]}}
>>> heap.root["cities"]["Lisbon"]["tags"].append("capital")
>>> heap.root["cities"]["Lisbon"]
{'lat': 38.72, 'tags': ['port', 'capital']}
>>> heap.close()
"""

from . import _core, _records, _scalars
from ._containers import Array, Deque, Dict, List, Set, plain
from ._errors import (
    AddressError,
    ArgumentError,
    BusyError,
    ClosedError,
    DamagedError,
    DeletedError,
    DeniedError,
    DiskFullError,
    Error,
    ExistsError,
    ForkedError,
    FormatError,
    HeapFullError,
    HistoryFullError,
    ExpiredError,
    InDoubtError,
    InputOutputError,
    LiveViewsError,
    MismatchError,
    NotFoundError,
    UnsupportedError,
)
from ._errors import BY_STATUS as _by_status
from ._heap import Attempt, Heap, Mark, Step, Transaction, info, open, opened, unpack, volatile
from ._record_lists import Records
from ._records import c8, c16, dtype, f4, f8, i1, i2, i4, i8, record, records, text, u1, u2, u4, u8

__version__ = "0.1.0"
library_version = _core.library_version

_core.set_error_classes(_by_status)
_core.set_proxy_classes((Dict, List, Set, Deque, Array, Records))
_core.set_helpers(_scalars.encode, _scalars.decode, _scalars.copy_array, _records.find_layout, _records.from_time,
                  _records.to_time, _records.records, _records.refuse_layout)  # fmt: skip

__all__ = [name for name in dir() if not name.startswith("_")]
