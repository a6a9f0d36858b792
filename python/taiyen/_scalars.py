"""Types that are rare, as bytes in a heap: each has a number, which is a part of the format and never changes.

Their modules are imported when the first one is met, for `import taiyen` is to be quick.
"""

_DATETIME, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _UUID, _PICKLE = range(1, 8)


def _encode_moment(number):
    def encode(moment):
        zone = moment.tzinfo
        name = ""
        if zone is not None and type(zone).__module__ == "zoneinfo" or type(zone).__name__ == "ZoneInfo":
            name = zone.key or ""
        elif zone is not None and type(zone).__module__ != "datetime":
            return None
        text = f"{moment.isoformat()}|{moment.fold}|{name}"
        return number, text.encode(), zone is None  # equal moments of two zones would be two keys

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
    """(type number, bytes, whether it can be a key) of an object, or None."""
    kind = type(thing)
    encoder = _ENCODERS.get((kind.__module__, kind.__qualname__))
    if encoder is not None:
        return encoder(thing)
    if not pickles:
        return None
    import pickle

    return _PICKLE, pickle.dumps(thing, pickle.HIGHEST_PROTOCOL), False


def _decode_moment(text, kind):
    iso, fold, name = text.split("|")
    moment = kind.fromisoformat(iso)
    if name:
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
    text = data.decode()
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
    """A plain copy of an array: numpy's where numpy is, else an array.array or nested lists of numbers."""
    try:
        import numpy
    except ImportError:
        return memoryview(array).tolist()
    return numpy.array(array)
