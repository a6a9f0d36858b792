"""Records: classes whose instances lie in a heap as C structs.

A class becomes a *layout*: a text with a line for the class, its name and bytes, and one for each field, its name, letter,
offset and bytes. The heap keeps it, and whoever opens the heap with another class of that name gets an error that says what differs.
"""

import datetime
import typing

from . import _core
from ._errors import DamagedError, MismatchError

# Bytes of each letter, and its alignment. s: a text, y: bytes; M, D: datetime and date.
_SIZES = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "f": 4, "d": 8, "Zf": 8, "Zd": 16,
          "M": 8, "D": 8}  # fmt: skip
_ALIGNMENTS = dict(_SIZES, Zf=4, Zd=8, s=1, y=1)
_NAMES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "int": "q", "uint64": "Q", "float32": "f", "float64": "d", "float": "d", "complex64": "Zf", "complex128": "Zd",
    "complex": "Zd",
}  # fmt: skip
_TELLS = {
    "?": "bool", "b": "i1", "B": "u1", "h": "i2", "H": "u2", "i": "i4", "I": "u4", "q": "i8", "Q": "u8", "f": "f4",
    "d": "f8", "Zf": "c8", "Zd": "c16", "s": "text", "y": "bytes", "M": "datetime", "D": "date",
}  # fmt: skip
_MISSING_TIME = -(2**63)  # numpy's NaT
_EPOCH = datetime.datetime(1970, 1, 1)


class _Letter(str):
    """What stands after an annotation's type: `Annotated[int, _Letter("i")]`."""


i1 = typing.Annotated[int, _Letter("b")]
i2 = typing.Annotated[int, _Letter("h")]
i4 = typing.Annotated[int, _Letter("i")]
i8 = typing.Annotated[int, _Letter("q")]
u1 = typing.Annotated[int, _Letter("B")]
u2 = typing.Annotated[int, _Letter("H")]
u4 = typing.Annotated[int, _Letter("I")]
u8 = typing.Annotated[int, _Letter("Q")]
f4 = typing.Annotated[float, _Letter("f")]
f8 = typing.Annotated[float, _Letter("d")]
c8 = typing.Annotated[complex, _Letter("Zf")]
c16 = typing.Annotated[complex, _Letter("Zd")]


def text(size):
    """The annotation of a text of so many bytes of UTF-8 at most: `name: taiyen.text(20)`.

    The same as `Annotated[str, 20]`, which type checkers understand.
    """
    return typing.Annotated[str, size]


def _letter_of(owner, name, annotation):
    """(letter, bytes) of a field."""
    if typing.get_origin(annotation) is typing.Annotated:
        kind, mark, *_ = typing.get_args(annotation)
        if isinstance(mark, _Letter):
            return str(mark), _SIZES[mark]
        if kind in (str, bytes) and type(mark) is int and 0 < mark < 65536:
            return "s" if kind is str else "y", mark
        annotation = kind
    letter = _NAMES.get(getattr(annotation, "__name__", ""))
    if annotation is datetime.datetime or annotation is datetime.date:
        letter = "M" if annotation is datetime.datetime else "D"
    if letter is None:
        raise TypeError(f"{owner}.{name}: a record cannot hold {annotation!r}; it holds bool, int, float, complex, "
                        "taiyen.i1 to taiyen.f8, datetime, date, and texts and bytes of a fixed length: "
                        "taiyen.text(20), Annotated[bytes, 16]")  # fmt: skip
    return letter, _SIZES[letter]


class _Layout:
    """Fields as C has them: each at the next offset of its alignment."""

    def __init__(self, name, fields):
        self.name = name
        self.fields = fields  # (name, letter, offset, bytes)

    @classmethod
    def of(cls, name, fields):
        placed, end = [], 0
        for field, letter, size in fields:
            offset = -(-end // _ALIGNMENTS[letter]) * _ALIGNMENTS[letter]
            placed.append((field, letter, offset, size))
            end = offset + size
        made = cls(name, tuple(placed))
        if made.size > 65535:
            raise TypeError(f"{name}: a record has {made.size:,} bytes, and 65,535 are the most; store long texts and "
                            "arrays beside it")  # fmt: skip
        return made

    @property
    def size(self):
        widest = max(_ALIGNMENTS[letter] for _, letter, _, _ in self.fields)
        return -(-max(offset + size for _, _, offset, size in self.fields) // widest) * widest

    @property
    def text(self):
        return "\n".join([f"{self.name} {self.size}"] + [" ".join(map(str, field)) for field in self.fields])

    @classmethod
    def parse(cls, text):
        head, *lines = text.split("\n")
        fields = []
        for line in lines:
            field, letter, offset, size = line.split(" ")
            if letter not in _ALIGNMENTS:
                raise MismatchError(f"the record {head} has a field of a type {letter!r}, which this version of the "
                                    "package does not know; use a newer one", "TY_E_MISMATCH")  # fmt: skip
            fields.append((field, letter, int(offset), int(size)))
        made = cls(head.rpartition(" ")[0], tuple(fields))
        if made.text != text:
            raise ValueError("another size")
        return made

    @classmethod
    def of_heap(cls, text):
        """Of a heap's own bytes, which may be damaged."""
        try:
            return cls.parse(text.decode())
        except MismatchError:
            raise
        except ValueError:
            remedy = "restore the heap from a copy"
            raise DamagedError(f"what the heap keeps of a class of records makes no sense: {text[:40]!r}; {remedy}",
                               "TY_E_DAMAGED", None, remedy) from None  # fmt: skip

    @property
    def format(self):
        """As in the buffer protocol."""
        parts, end = [], 0
        for field, letter, offset, size in self.fields:
            code = {"s": f"{size}s", "y": f"{size}s", "M": "q", "D": "q"}.get(letter, letter)
            parts.append(f"{offset - end}x" * (offset > end) + f"{code}:{field}:")
            end = offset + size
        return "T{=" + "".join(parts) + f"{self.size - end}x" * (self.size > end) + "}"

    def dtype(self):
        import numpy

        codes = {"s": "S%d", "y": "V%d", "M": "M8[us]", "D": "M8[D]", "Zf": "c8", "Zd": "c16", "q": "i8", "Q": "u8"}
        formats = [codes.get(letter, letter).replace("%d", str(size)) for _, letter, _, size in self.fields]
        return numpy.dtype({"names": [field[0] for field in self.fields], "formats": formats,
                            "offsets": [field[2] for field in self.fields], "itemsize": self.size})  # fmt: skip


def _describe(field):
    name, letter, offset, size = field
    return f"{_TELLS[letter]}{f' of {size} bytes' if letter in 'sy' else ''} at byte {offset}"


def _check_same(layout, kept):
    """Of the program's class, and of the heap."""
    here, there = ({field[0]: field for field in one.fields} for one in (layout, kept))
    remedy = ("use the class as it was; or give the new one another name, @taiyen.record(name=...), and copy the "
              "records into it")  # fmt: skip
    for name in [*there, *here]:
        if here.get(name) == there.get(name):
            continue
        in_heap = f"is {_describe(there[name])} in the heap" if name in there else "is not in the heap's record"
        in_class = f"is {_describe(here[name])} in the class" if name in here else "is not in the class"
        raise MismatchError(f"{layout.name}.{name} {in_heap}, and {in_class}; {remedy}", "TY_E_MISMATCH", None, remedy)


_layouts = {}  # number to layout
_by_name = {}  # of the program's classes: name to numbers, by module; a class that is defined again replaces the first
_defined = {}  # module and text to the number of the last class
_by_text = {}  # of classes that were made from a heap's text


def _add(layout, plain):
    plain.__eq__ = _equal
    plain.__hash__ = None
    plain.__match_args__ = tuple(field[0] for field in layout.fields)
    fields = tuple(layout.fields)
    number = _core.add_layout(layout.name, layout.text, layout.format, layout.size, fields, plain)
    _layouts[number] = layout
    members = {field[0]: _core.Field(number, place) for place, field in enumerate(fields)}
    members.update(__module__=plain.__module__, __qualname__=plain.__qualname__, __doc__=plain.__doc__,
                   __hash__=None, heap=property(lambda self: self._heap(), doc="The heap that it lives in."),
                   is_alive=property(lambda self: self._is_alive(), doc="Whether it is still there."),
                   __copy__=lambda self: self._plain(), __deepcopy__=lambda self, memo: self._plain(),
                   __reduce__=lambda self: (_same, (self._plain(),)))  # fmt: skip
    for name in plain.__match_args__:
        if name in ("heap", "is_alive"):
            members[name] = _core.Field(number, plain.__match_args__.index(name))
    _core.set_row_class(number, type(plain.__name__, (plain, _core.RowBase), members))
    plain.__taiyen_layout__ = number
    return number


def _same(record):
    return record


def _equal(self, other):
    mine = _layouts[type(self).__taiyen_layout__]
    its = _layouts.get(getattr(type(other), "__taiyen_layout__", None))
    if mine is not its and (its is None or mine.text != its.text):
        return NotImplemented
    return all(getattr(self, field[0]) == getattr(other, field[0]) for field in mine.fields)


def _make(plain, name):
    import dataclasses

    if hasattr(plain, "__slots__"):
        raise TypeError(f"{plain.__name__}: a record has no __slots__; leave them out, or derive from a class without")
    plain = dataclasses.dataclass(eq=False)(plain)
    hints = typing.get_type_hints(plain, include_extras=True)
    name = name or plain.__qualname__.rpartition("<locals>.")[2]
    fields = [(field.name, *_letter_of(name, field.name, hints[field.name])) for field in dataclasses.fields(plain)]
    if not fields:
        raise TypeError(f"{name}: a record has fields: write `x: float` in the class")
    if any(mark in name for mark in " \n"):
        raise ValueError(f"{name!r}: the name of a record has no spaces")
    layout = _Layout.of(name, fields)
    number = _add(layout, plain)
    for before in (_defined.get((plain.__module__, layout.text)), _by_text.get(layout.text)):
        if before is not None:
            _core.replace_layout(before, number)
    _defined[plain.__module__, layout.text] = number
    classes = _by_name.setdefault(name, {})
    classes.pop(plain.__module__, None)  # the last one is the last
    classes[plain.__module__] = number
    return plain


def record(plain=None, /, *, name=None):
    """Makes a class a record: a dataclass, whose instances lie in a heap as C structs.

        @taiyen.record
        class City:
            name: taiyen.text(20)  # 20 bytes of UTF-8 at most
            lat: float
            people: taiyen.u4 = 0

    Fields: bool, int (8 bytes), float (8 bytes), complex, taiyen.i1 to i8, u1 to u8, f4, f8, c8, c16; datetime without a
    zone, and date (8 bytes; None is numpy's NaT; a fold is not kept); `taiyen.text(n)`; `Annotated[bytes, n]`: n bytes exactly. numpy's types
    are taken, too. Types and sizes are checked when a record is stored.

    A record that is stored is copied. What comes back is a row: an instance of the class whose fields are the heap's. A list
    of records of one class becomes `Records`. The heap keeps what the fields are, by the class's name (or `name`): a class of
    that name with other fields is refused (MismatchError) before anything is stored. Classes with the same fields, as one that
    is defined again or one of another module, are one to a heap: records of each go into each other's lists and compare equal.
    They come back as the one that was last stored there, or named to `Heap.records`, else as the last one defined.
    """
    if plain is None:
        return lambda one: _make(one, name)
    return _make(plain, name)


def dtype(of):
    """numpy's type of the records of a class: texts are S, bytes V, times M8."""
    return _layouts[of.__taiyen_layout__].dtype()


class records(list):
    """A plain list that is stored as Records of that class, also if it is empty: `heap.root["cities"] = records(City)`."""

    def __init__(self, of, items=(), /):
        if not hasattr(of, "__taiyen_layout__"):
            raise TypeError(f"{of!r} is no class of records: write @taiyen.record before it")
        super().__init__(items)
        self.of = of

    def __reduce__(self):
        return records, (self.of, list(self))


def _class_for(kept):
    """The number of the program's class for a heap's layout; None: it has none of that name."""
    numbers = [*_by_name.get(kept.name, {}).values()]
    for number in reversed(numbers):
        if _layouts[number].text == kept.text:
            return number
    if numbers:
        _check_same(_layouts[numbers[-1]], kept)
    return None


def find_layout(text):
    """The number of the class for records of a heap. MismatchError: the program's class differs."""
    kept = _Layout.of_heap(text)
    text = kept.text
    number = _class_for(kept)
    if number is not None:
        return number
    if text not in _by_text:  # the program has none: one with the same fields
        annotations = {field[0]: _TYPES_OF.get(field[1], int) for field in kept.fields}
        import dataclasses

        plain = dataclasses.make_dataclass(kept.name.replace(".", "_"), annotations.items(), eq=False)
        _by_text[text] = _add(kept, plain)
    return _by_text[text]


def refuse_layout(number, text):
    """Of a class whose records are to be stored, and of a heap that has one of its name."""
    _check_same(_layouts[number], _Layout.of_heap(text))
    raise MismatchError(f"the heap keeps a class {_layouts[number].name} of other bytes", "TY_E_MISMATCH")


_TYPES_OF = {"?": bool, "f": float, "d": float, "Zf": complex, "Zd": complex, "s": str, "y": bytes,
             "M": datetime.datetime, "D": datetime.date}  # fmt: skip


def check(heap):
    """Compares what a heap that was opened has kept with the program's classes."""
    for text in heap._layouts():
        _class_for(_Layout.of_heap(text))


def to_time(letter, time):
    """The number of a datetime or date; None of anything else."""
    if time is None:
        return _MISSING_TIME
    if letter == "D" and type(time) is datetime.date:
        return time.toordinal() - _EPOCH.toordinal()
    if letter == "M" and isinstance(time, datetime.datetime) and time.tzinfo is None:
        return (time - _EPOCH) // datetime.timedelta(microseconds=1)
    return None


def from_time(letter, number):
    """The datetime or date again."""
    if number == _MISSING_TIME:
        return None
    if letter == "D":
        return datetime.date.fromordinal(_EPOCH.toordinal() + number)
    return _EPOCH + datetime.timedelta(microseconds=number)
