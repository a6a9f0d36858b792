"""Taiyen: Python objects and arrays that live in a durable heap.

>>> import taiyen
>>> heap = taiyen.volatile()  # taiyen.open("atlas.ty") for one in a file
>>> heap.root["cities"] = {"Lisbon": {"lat": 38.72, "tags": ["port"]}}
>>> heap.root["cities"]["Lisbon"]["tags"].append("capital")
>>> heap.root["cities"]["Lisbon"]
{'lat': 38.72, 'tags': ['port', 'capital']}
>>> heap.close()
"""

from . import _core, _scalars
from ._containers import CLASSES as _classes
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
    InDoubtError,
    InputOutputError,
    LiveViewsError,
    MismatchError,
    NotFoundError,
    UnsupportedError,
)
from ._errors import BY_STATUS as _by_status
from ._heap import Heap, Step, Transaction, info, open, unpack, volatile

__version__ = "0.1.0"
library_version = _core.library_version

_core.set_error_classes(_by_status)
_core.set_proxy_classes(_classes)
_core.set_helpers(_scalars.encode, _scalars.decode, _scalars.copy_array)

__all__ = [name for name in dir() if not name.startswith("_")]
