"""Types that are rare, as bytes in a heap: each has a number, which is a part of the format and never changes.

Their modules are imported when the first one is met, for `import taiyen` is to be quick.
"""

_DATETIME, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _UUID, _PICKLE, _NUMPY = range(1, 9)


def _name_of(zone):
    """A zone as text: "" (none, or an offset alone), the key of a ZoneInfo, or "=" and the name of an offset. None: it is
    another one, of which there is no text."""
    if zone is None:
        return ""
    if type(zone).__module__ == "zoneinfo":
        return zone.key
    if type(zone).__module__ != "datetime":
        return None
    _, *name = zone.__getinitargs__()
    return f"={name[0]}" if name else ""


def _encode_moment(number):
    def encode(moment):
        name = _name_of(moment.tzinfo)
        if name is None:  # no text says what the zone is; a pickle may
            return None
        text = f"{moment.isoformat()}|{moment.fold}|{name}"
        # Equal moments of two zones would be two keys, and so would those that differ in fold, which are equal.
        return number, text.encode("utf-8", "surrogatepass"), moment.tzinfo is None and not moment.fold

    return encode


_ENCODERS = {
    ("datetime", "datetime"): _encode_moment(_DATETIME),
    ("datetime", "time"): _encode_moment(_TIME),
    ("datetime", "date"): lambda date: (_DATE, date.isoformat().encode(), True),
    ("datetime", "timedelta"): lambda span: (
        _TIMEDELTA,
        f"{span.days}|{span.seconds}|{span.microseconds}".encode(),
        True,
    ),
    # No keys: Decimal("1.0") and 1 would have to be one.
    ("decimal", "Decimal"): lambda number: (_DECIMAL, str(number).encode(), False),
    ("uuid", "UUID"): lambda uuid: (_UUID, uuid.bytes, True),
}


def encode(thing, pickles):
    """(type number, bytes, whether it can be a key) of an object, or None; False: nor is it an array, though it has a buffer."""
    kind = type(thing)
    encoder = _ENCODERS.get((kind.__module__, kind.__qualname__))
    code = encoder(thing) if encoder is not None else _encode_numpys(thing) if hasattr(thing, "dtype") else None
    if code or not pickles:
        return code
    import pickle

    return _PICKLE, pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), False


def _encode_numpys(thing):
    """numpy's numbers, times and texts that stand alone. What is derived from its arrays has more than numbers (a mask, a
    unit), which an array of a heap would lose."""
    import sys

    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(thing, numpy.generic):
        if thing.dtype.kind not in "biufcmMSU":
            return None
        return _NUMPY, f"{thing.dtype.str};".encode() + thing.tobytes(), False
    return False if isinstance(thing, numpy.ndarray) and type(thing) not in (numpy.ndarray, numpy.memmap) else None


_WAYS = {
    "V": "make a class of records with the same fields (taiyen.record): heap.records(name, it).extend(array)",
    "U": "store array.tolist(), or put the texts into records (taiyen.record), as taiyen.text(n)",
    "S": "store array.tolist(), or put the bytes into records (taiyen.record), as Annotated[bytes, n]",
    "M": "store array.view('i8') with the unit beside it, array.tolist(), or put the times into records (taiyen.record)",
    "m": "store array.view('i8') with the unit beside it, or array.tolist()",
    "O": "store array.tolist()",
}


def refuse_array(array):
    """TypeError: a heap has no such arrays; what to store instead."""
    dtype = getattr(array, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind is None and dtype is None:
        kind = dtype = getattr(array, "format", None)
    way = _WAYS.get(kind)
    if way is None and getattr(array, "ndim", 0) > 8:
        way = "store it with 8 dimensions at most (array.reshape)"
    elif way is None and not getattr(dtype, "isnative", True):
        way = "store array.astype(array.dtype.newbyteorder('='))"
    elif way is None:
        way = "store array.astype('f8'), or array.tolist()"
    what = type(array).__name__ if dtype is None else f"type {dtype}"
    raise TypeError(f"a heap has no arrays of {what}: it has booleans, whole numbers, floats and complex numbers of the machine's "
                    f"byte order, in 8 dimensions at most; {way}, or open the heap with pickle=True")  # fmt: skip


def _decode_numpys(data):
    import numpy

    kind, _, data = data.partition(b";")
    kind = numpy.dtype(kind.decode())
    return numpy.frombuffer(data, kind)[0] if kind.itemsize else kind.type()


def _decode_moment(text, kind):
    iso, fold, name = text.split("|", 2)
    moment = kind.fromisoformat(iso)
    if name.startswith("="):
        from datetime import timezone

        moment = moment.replace(tzinfo=timezone(moment.utcoffset(), name[1:]))
    elif name:
        from zoneinfo import ZoneInfo

        moment = moment.replace(tzinfo=ZoneInfo(name))
    return moment.replace(fold=int(fold))


def decode(number, data, pickles):
    """The object again."""
    if number == _UUID:
        from uuid import UUID

        return UUID(bytes=data)
    if number == _PICKLE:
        if not pickles:
            raise TypeError("the value was pickled, and to unpickle it runs code of its choice: open the heap with "
                            "pickle=True if you trust its file")  # fmt: skip
        import pickle

        return pickle.loads(data)
    if number == _NUMPY:
        return _decode_numpys(data)
    text = data.decode("utf-8", "surrogatepass")
    if number == _DECIMAL:
        from decimal import Decimal

        return Decimal(text)
    import datetime

    if number == _DATE:
        return datetime.date.fromisoformat(text)
    if number == _TIMEDELTA:
        return datetime.timedelta(*map(int, text.split("|")))
    if number in (_DATETIME, _TIME):
        return _decode_moment(text, datetime.datetime if number == _DATETIME else datetime.time)
    raise TypeError(f"a value of type {number} is none of this version of the package: use a newer one")


def copy_array(array):
    """A plain copy of an array: numpy's where numpy is, else nested lists of numbers. It is no view."""
    try:
        import numpy
    except ImportError:
        return array.tolist()
    made = numpy.empty(array.shape, array.dtype)
    array._copy_into(made)
    return made
