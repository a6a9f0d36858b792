"""Goal: records are C structs in the heap that behave as dataclasses do, and a list of them as a list and as a numpy array.
Method: each kind of heap, classes that differ from what a heap has, and a state machine beside a list of plain records."""

import copy
import ctypes
import dataclasses
import gc
import pickle
import random
import struct
import sys
import threading
import time
import types
from datetime import date, datetime, timezone
from typing import Annotated

import pytest
import taiyen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule


@taiyen.record
class City:
    name: taiyen.text(20)
    lat: float
    people: taiyen.u4 = 0
    port: bool = False


@taiyen.record
class All:
    a: bool
    b: taiyen.i1
    c: taiyen.u1
    d: taiyen.i2
    e: taiyen.u2
    f: taiyen.i4
    g: taiyen.u4
    h: int
    i: taiyen.u8
    j: taiyen.f4
    k: float
    l: taiyen.c8
    m: complex
    n: Annotated[str, 5]
    o: Annotated[bytes, 3]
    p: datetime
    q: date


LISBON, PORTO, FARO = City("Lisbon", 38.72, 545_796, True), City("Porto", 41.15, 231_800), City("Faro", 37.02, 67_650)
FULL = All(True, -128, 255, -(2**15), 2**16 - 1, -(2**31), 2**32 - 1, -(2**63), 2**64 - 1, 0.5, 1e300, 1 - 2j, 1e300j,
           "éüx", b"a\0\0", datetime(1969, 5, 4, 3, 2, 1, 999_999), date(1, 1, 1))  # fmt: skip


def test_one(heap):
    heap.root["capital"] = LISBON
    city = heap.root["capital"]
    assert city is heap.root["capital"] and isinstance(city, City) and type(city) is not City
    assert city == LISBON and LISBON == city and not city != LISBON and city != PORTO and city != "Lisbon"
    assert repr(city) == "City(name='Lisbon', lat=38.72, people=545796, port=True)" == repr(LISBON)
    city.people += 1
    city.name = "Lisboa"
    assert heap.root["capital"] == City("Lisboa", 38.72, 545_797, True) and LISBON.people == 545_796
    for plain in (copy.copy(city), copy.deepcopy(city), pickle.loads(pickle.dumps(city)), taiyen.plain(city),
                  dataclasses.replace(city)):  # fmt: skip
        assert type(plain) is City and plain == city
    assert dataclasses.asdict(city) == {"name": "Lisboa", "lat": 38.72, "people": 545_797, "port": True}
    match city:
        case City(name, lat, port=True):
            assert (name, lat) == ("Lisboa", 38.72)
        case _:
            pytest.fail("no match")
    assert city.heap is heap and city.is_alive
    with pytest.raises(TypeError):
        hash(city)
    with pytest.raises(AttributeError, match="nam"):
        city.nam = "a field that there is not"
    with pytest.raises(AttributeError):
        del city.name
    heap.root["capital"] = PORTO  # another one
    city.lat = 1.0  # its own, which nothing stores any more
    assert city.is_alive and city.name == "Lisboa" and heap.root["capital"] == PORTO
    heap.root["twice"] = [heap.root["capital"], 1, heap.root["capital"]]
    heap.root["twice"][0].lat = 0.0  # each store is a copy
    assert heap.root["twice"][2] == PORTO == heap.root["capital"]
    assert type(heap.root.pop("capital")) is City and "capital" not in heap.root


def test_all_types(heap, path):
    heap.root["all"] = FULL
    heap.root["many"] = [FULL, FULL]
    assert heap.root["all"] == FULL == heap.root["many"][1]
    for field in dataclasses.fields(All):
        one, expected = getattr(heap.root["all"], field.name), getattr(FULL, field.name)
        assert type(one) is type(expected)
        setattr(heap.root["all"], field.name, expected)
    heap.root["all"].p = heap.root["all"].q = None
    assert heap.root["all"].p is None and heap.root["all"].q is None
    numpy = pytest.importorskip("numpy")
    view = heap.root["many"].numpy()
    assert view.dtype.names == tuple(field.name for field in dataclasses.fields(All)) and view.shape == (2,)
    assert view.dtype == numpy.dtype([("a", "?"), ("b", "i1"), ("c", "u1"), ("d", "i2"), ("e", "u2"), ("f", "i4"),
        ("g", "u4"), ("h", "i8"), ("i", "u8"), ("j", "f4"), ("k", "f8"), ("l", "c8"), ("m", "c16"), ("n", "S5"),
        ("o", "V3"), ("p", "M8[us]"), ("q", "M8[D]")], align=True)  # fmt: skip
    assert view["h"].dtype.char == numpy.dtype("i8").char == numpy.asarray(heap.root["many"])["h"].dtype.char
    assert view["i"].dtype.char == numpy.dtype("u8").char == taiyen.dtype(All)["i"].char
    assert view["n"][1].decode() == "éüx" and view["o"][1].tobytes() == b"a\0\0"
    assert view["p"][1].item() == FULL.p and view["q"][1].item() == FULL.q and view["h"][0] == FULL.h
    assert not hasattr(view, "mask") and (numpy.asarray(heap.root["many"])["k"] == 1e300).all()
    del view


@pytest.mark.parametrize("field, wrong, error", [
    ("a", 1, TypeError), ("a", "x", TypeError), ("b", 128, OverflowError), ("c", -1, OverflowError), ("d", 1.5, TypeError),
    ("g", 2**32, OverflowError), ("h", 2**63, OverflowError), ("i", -1, OverflowError), ("k", "x", TypeError),
    ("k", None, TypeError), ("m", "x", TypeError), ("n", "éüxy", OverflowError), ("n", "a\0", TypeError),
    ("n", b"x", TypeError), ("o", b"xy", TypeError), ("p", date(1, 1, 1), TypeError),
    ("p", datetime(1, 1, 1, tzinfo=timezone.utc), TypeError), ("q", datetime(1, 1, 1), TypeError),
    ("j", 1e39, OverflowError), ("j", -3.5e38, OverflowError), ("k", 10**400, OverflowError), ("m", 10**400, OverflowError),
    ("l", 1e39, OverflowError), ("l", 1 - 1e39j, OverflowError),
])  # fmt: skip
def test_types_are_checked(heap, field, wrong, error):
    heap.root["all"] = FULL
    before = heap.stats()["live_blocks"]
    bad = dataclasses.replace(FULL, **{field: wrong})
    for value, path in ((bad, "value"), ({"in": [1, bad]}, r"value\['in'\]\[1\]"), ([FULL, bad], r"value\[1\]")):
        with pytest.raises(error, match=rf"{path}\.{field}"):
            heap.root["bad"] = value
    with pytest.raises(error, match=rf"All\.{field}"):
        setattr(heap.root["all"], field, wrong)
    assert heap.root == {"all": FULL} and heap.stats()["live_blocks"] <= before + 6  # the layout's, and a table's


def test_numbers_at_the_edge_of_a_float(heap):
    heap.root["all"] = FULL
    one = heap.root["all"]
    for wide in (3.4028235e38, float("inf"), -float("inf"), 1e-50):
        one.j, one.l = wide, complex(wide, -wide)
        assert one.j == struct.unpack("f", struct.pack("f", wide))[0] == one.l.real == -one.l.imag
    for name in "jkhn":
        with pytest.raises((OverflowError, TypeError), match=f"All.{name}: .*one of type <class 'int'>"):
            setattr(one, name, 10**5000)  # too long to be shown


def test_list_is_an_array(heap):
    numpy = pytest.importorskip("numpy")
    heap.root["cities"] = [LISBON, PORTO]
    cities = heap.root["cities"]
    assert isinstance(cities, taiyen.Records) and cities.of is City and cities == [LISBON, PORTO]
    view = cities.numpy()
    assert view.ctypes.data == cities.numpy().ctypes.data and view["name"].tolist() == [b"Lisbon", b"Porto"]
    with heap.transaction() if heap.kind == "transactional" else heap.step() if heap.kind != "volatile" else (
            pytest.MonkeyPatch.context()):  # fmt: skip
        if heap.kind != "transactional" and heap.kind != "volatile":
            cities.record()
        view["lat"] += 1
    assert cities[0].lat == 39.72
    for change in (lambda: cities.append(PORTO), lambda: cities.pop(), lambda: cities.clear(), heap.close,
                   lambda: heap.root.pop("cities"), lambda: cities.insert(0, PORTO)):  # fmt: skip
        with pytest.raises(BufferError):
            change()
    place = view.ctypes.data
    heap.root["others"] = ["x" * 100] * 50
    cities[1] = LISBON
    assert cities.numpy().ctypes.data == place and view["lat"][1] == 38.72
    del view
    more = numpy.zeros(1000, taiyen.dtype(City))
    more["name"], more["people"] = b"somewhere", numpy.arange(1000)
    cities.extend(more)
    cities.extend(more[::100])
    assert len(cities) == 1012 and cities[1001] == City("somewhere", 0.0, 999) and cities[1011].people == 900
    with pytest.raises(TypeError):
        cities.extend(numpy.zeros(2))
    cities.resize(1015)
    assert cities[1014] == City("", 0.0) and cities.numpy()["people"][:1002].sum() == 545_796 * 2 + 499_500
    cities.resize(2)
    heap.root["copied"] = cities
    assert heap.root["copied"] is cities
    heap.root["plain"] = taiyen.plain(cities)
    assert heap.root["plain"] == cities and heap.root["plain"] is not cities


def test_layout_is_cs(heap):
    class Struct(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char * 20), ("lat", ctypes.c_double), ("people", ctypes.c_uint32),
                    ("port", ctypes.c_bool)]  # fmt: skip

    heap.root["cities"] = [LISBON, PORTO]
    with memoryview(heap.root["cities"]) as view:
        assert view.itemsize == ctypes.sizeof(Struct)
        there = (Struct * 2).from_buffer_copy(view.tobytes())
    assert (there[1].name, there[1].lat, there[0].people, there[0].port) == (b"Porto", 41.15, 545_796, True)


def test_other_lists(heap):
    heap.root["mixed"] = [LISBON, None, FULL]
    assert isinstance(heap.root["mixed"], taiyen.List) and heap.root["mixed"] == [LISBON, None, FULL]
    heap.root["empty"] = taiyen.records(City)
    assert heap.root["empty"] == [] and heap.root["empty"].of is City
    assert taiyen.plain(heap.root["empty"]).of is City and pickle.loads(pickle.dumps(heap.root["empty"])).of is City
    heap.root["empty"].append(PORTO)
    with pytest.raises(TypeError, match="City is needed"):
        heap.root["empty"].append(FULL)
    with pytest.raises(TypeError, match="City is needed"):
        heap.root["empty"].extend([PORTO, "Porto"])
    assert heap.root["empty"] == [PORTO] and heap.records("empty", City) is heap.root["empty"]
    assert heap.records("new", All) == []
    with pytest.raises(TypeError):
        heap.records("new", City)
    with pytest.raises(TypeError):
        taiyen.records(int)


def test_from_another_heap(heap):
    other = taiyen.volatile()
    other.root["cities"], other.root["one"] = [LISBON, PORTO], PORTO
    heap.root["all"] = [other.root["cities"], other.root["one"], {"in": other.root["cities"]}, list(other.root["cities"])]
    other.close()
    assert heap.root["all"] == [[LISBON, PORTO], PORTO, {"in": [LISBON, PORTO]}, [LISBON, PORTO]]
    ring = [[FULL]]
    ring.append(ring)
    heap.root["ring"] = ring
    rows = heap.root["ring"][0]
    del heap.root["ring"]
    assert rows == [FULL] and heap.collect() == 1 and rows.is_alive and rows == [FULL]


def test_rows_stay_with_their_records(heap):
    heap.root["cities"] = [City(str(number), number) for number in range(6)]
    cities = heap.root["cities"]
    rows = list(cities)
    assert cities[-1] is rows[5] and cities[1:3] == rows[1:3]
    del cities[0]
    cities.insert(2, PORTO)
    assert [row.lat for row in rows[1:]] == [1, 2, 3, 4, 5] and cities[1] is rows[2] and cities[3] is rows[3]
    with pytest.raises(taiyen.DeletedError):
        rows[0].lat
    cities.sort(key=lambda city: -city.lat)
    assert cities[0] == PORTO and [city.lat for city in cities] == [41.15, 5, 4, 3, 2, 1] and cities[1] is rows[5]
    cities.reverse()
    assert cities[0] is rows[1] and rows[1].lat == 1
    cities.pop()
    cities[0] = LISBON
    assert rows[1] == City("1", 1) and not rows[1].is_alive and cities[0] == LISBON  # it is what it was
    del heap.root["cities"]
    assert cities[0] == LISBON and cities[1] is rows[2]
    heap.root["moved"] = cities
    assert heap.root["moved"] is cities and heap.root["moved"][1] is rows[2]


def test_transactions(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["cities"] = [LISBON, PORTO]
        cities, first = heap.root["cities"], heap.root["cities"][0]
        with pytest.raises(KeyError), heap.transaction():
            first.people = 1
            heap.root["new"] = FULL
            new = heap.root["new"]
            cities.append(City("gone", 0.0))
            gone = cities[2]
            with pytest.raises(BufferError):
                cities.numpy()  # a rollback would free it
            raise KeyError
        assert first.people == 545_796 and cities == [LISBON, PORTO] and heap.root == {"cities": [LISBON, PORTO]}
        cities.append(City("there", 0.0))
        for old in (gone, new):
            with pytest.raises(taiyen.DeletedError):
                repr(old)
        second = cities[1]
        with pytest.raises(KeyError), heap.transaction():
            del cities[0]
            assert cities[0] is second
            raise KeyError
        for old in (first, second):  # which ones they are, nobody knows now
            with pytest.raises(taiyen.DeletedError):
                old.people
        with heap.transaction():
            cities[0].people = 7
            cities[0:2] = [PORTO, LISBON, PORTO]
        heap.discard()
    with taiyen.open(path, readonly=True) as heap:
        assert heap.root["cities"] == [PORTO, LISBON, PORTO, City("there", 0.0)]
        row = heap.root["cities"][0]
        with pytest.raises(taiyen.DeniedError):
            row.people = 1
        with pytest.raises(taiyen.DeniedError):
            heap.root["cities"].append(PORTO)
        if pytest.importorskip("numpy"):
            assert not heap.root["cities"].numpy().flags.writeable
    with pytest.raises(taiyen.ClosedError):
        row.people


def test_layouts_of_a_transaction_that_was_rolled_back(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        for record in (LISBON, FULL, LISBON):
            with pytest.raises(KeyError), heap.transaction():
                heap.root["one"] = record
                assert heap.root["one"] == record
                raise KeyError
        with heap.transaction():
            heap.root["one"] = FULL
            assert heap.root["one"] == FULL
            heap.root["two"] = LISBON
            assert heap.root["two"] == LISBON


def test_undo(path):
    with taiyen.open(path) as heap:
        heap.root["cities"] = [LISBON, PORTO]
        row = heap.root["cities"][1]
        with heap.step("rename"):
            row.name = "Oporto"
        with heap.step("more"):
            heap.root["cities"].append(LISBON)
        heap.undo()
        heap.undo()
        assert row.name == "Porto" and len(heap.root["cities"]) == 2
        heap.redo()
        heap.redo()
        assert row.name == "Oporto" and heap.root["cities"][2] == LISBON
        del heap.root["cities"][0]
        heap.undo()
        assert heap.root["cities"][0] == LISBON


@pytest.mark.parametrize("replace", ["r[0] = FARO", "r[0:1] = [FARO]", "r[::2] = [FARO]", "r[0], r[1] = r[1], r[0]"])
def test_rows_of_a_record_that_takes_anothers_place(path, replace):
    """PY10. When that was taken back, its row was one of the record that was there before, and stored into that."""
    with taiyen.open(path) as heap:
        heap.root["r"] = [LISBON, PORTO]
        r = heap.root["r"]
        with heap.step():
            exec(replace)
        row, expected = r[0], r[0].name
        heap.undo()
        with pytest.raises(taiyen.DeletedError):
            row.people = 1
        assert not row.is_alive and r == [LISBON, PORTO]
        row = r[0]
        heap.redo()
        assert not row.is_alive and r[0].name == expected
        row = r[0]
    with taiyen.open(path) as heap:  # a step of another process
        row = heap.root["r"][0]
        assert row.name == expected
        heap.undo()
        assert not row.is_alive and heap.root["r"] == [LISBON, PORTO]
    with taiyen.open(f"{path}t", kind="transactional") as heap:
        heap.root["r"] = [LISBON, PORTO]
        r = heap.root["r"]
        with pytest.raises(KeyError), heap.transaction():
            exec(replace)
            row = r[0]
            raise KeyError
        assert not row.is_alive and r == [LISBON, PORTO]
        with heap.transaction():
            exec(replace)
            row = r[0]
        row.people = 5
        assert row.is_alive and r[0] is row and r[0].people == 5


def make(source):
    names = {"taiyen": taiyen, "__name__": __name__}
    exec(source, names)
    return names["Point"]


def test_layouts_are_compared(path):
    Point = make("@taiyen.record(name='test.Point')\nclass Point:\n x: float\n y: float")
    with taiyen.open(path) as heap:
        heap.root["points"] = [Point(1, 2)]
    for fields, expected in {"x: float\n y: taiyen.f4": "Point.y is f8 at byte 8 in the heap, and is f4 at byte 8 in the class",
                         "y: float\n x: float": "Point.x is f8 at byte 0 in the heap, and is f8 at byte 8",
                         "x: float": "Point.y is f8 at byte 8 in the heap, and is not in the class",
                         "x: float\n y: float\n z: taiyen.text(3)": "Point.z is not in the heap's record, and is text of 3"
                         }.items():  # fmt: skip
        make(f"@taiyen.record(name='test.Point')\nclass Point:\n {fields}")
        with pytest.raises(taiyen.MismatchError, match=expected):
            taiyen.open(path)
    Other = make("@taiyen.record(name='test.Point')\nclass Point:\n x: float\n y: float")
    with taiyen.open(path) as heap:
        assert heap.root["points"] == [Other(1, 2)] and isinstance(heap.root["points"][0], Other)
        make("@taiyen.record(name='test.Point')\nclass Point:\n x: float")
        assert heap.root["points"] == [Other(1, 2)]  # found once
    from taiyen import _records

    del _records._by_name["test.Point"]  # a program that has no such class
    with taiyen.open(path) as heap:
        assert heap.root["points"][0].y == 2 and repr(heap.root["points"]) == "[test_Point(x=1.0, y=2.0)]"
        heap.root["points"].append(heap.root["points"][0])
        make("@taiyen.record(name='test.Point')\nclass Point:\n x: float")
    with pytest.raises(taiyen.MismatchError):
        taiyen.open(path)


def test_a_class_that_is_defined_again(heap, path):
    """PY18. A notebook's cell that is run again: with the same fields it is the same class, with others nothing is stored of
    it. It was taken once, and then the heap opened with neither."""
    cell = "@taiyen.record(name='test.Again')\nclass Point:\n x: float\n y: float"
    First = make(cell)
    heap.root["points"], heap.root["one"] = [First(1, 2)], First(3, 4)
    points = heap.root["points"]
    row = points[0]
    Second = make(cell)
    points.append(Second(5, 6))
    heap.root["more"] = [Second(1, 2), First(1, 2)]
    assert heap.root["more"].of is Second and points.of is Second
    assert isinstance(points[1], Second) and isinstance(heap.root["one"], Second) and type(row) is not type(points[1])
    assert points == [First(1, 2), Second(5, 6)] and row == Second(1, 2) and First(1, 2) == Second(1, 2)
    assert Second(5, 6) in points and type(taiyen.plain(points[1])) is Second and heap.records("points", First) == points
    points[0] = row
    points[0] = Second(1, 2)
    Other = make(cell.replace("y: float", "y: int"))
    for store in (lambda: heap.root.__setitem__("other", [Other(1, 2)]), lambda: heap.root.__setitem__("other", Other(1, 2)),
                  lambda: heap.root["points"].append(Other(1, 2)), lambda: heap.root.update(other={"deep": [[Other(1, 2)]]}),
                  lambda: heap.records("other", Other)):  # fmt: skip
        with pytest.raises(taiyen.MismatchError, match="Again.y is f8 at byte 8 in the heap, and is i8 at byte 8 in the class"):
            store()
    assert "other" not in heap.root and heap.root["points"] == points == [Second(1, 2), Second(5, 6)]
    Again = make(cell)
    assert points.of is Again and isinstance(heap.root["one"], Again)
    if path.exists():
        heap.close()
        Third = make(cell)
        with taiyen.open(path) as heap:
            assert heap.root["points"] == [Third(1, 2), Third(5, 6)]


def test_classes_of_two_modules(heap):
    """Classes of one name with the same fields are one layout to a heap: what was stored last, or asked for, comes back."""
    P, Q = (types.ModuleType(name) for name in ("geometry", "pixels"))
    for module in (P, Q):
        exec("import taiyen\n@taiyen.record\nclass Pixel:\n x: int\n y: int\n def sum(self): return self.x + self.y",
             module.__dict__)  # fmt: skip
    P, Q = P.Pixel, Q.Pixel
    heap.root["q"] = [Q(1, 2)]
    q = heap.root["q"]
    assert q.of is Q and isinstance(q[0], Q) and q[0] == Q(1, 2) == P(1, 2) and taiyen.plain(q[0]) == Q(1, 2)
    assert q[0].sum() == 3 and Q(1, 2) in q and P(1, 2) in q
    q.append(Q(3, 4))
    q.append(P(5, 6))
    heap.root["p"] = [P(1, 2)]
    assert isinstance(heap.root["p"][0], P) and isinstance(q[0], Q) and heap.root["p"] == q[:1]
    for of in (Q, P):
        assert isinstance(heap.records("p", of)[0], of)
        gc.collect()
    with pytest.raises(TypeError):
        heap.records("p", City)


def test_rows_keep_their_class(heap):
    heap.root["c"], heap.root["f"] = [LISBON], [FULL]
    row = heap.root["c"][0]
    for class_of in (type(heap.root["f"][0]), City):
        with pytest.raises(TypeError):
            row.__class__ = class_of
        with pytest.raises(TypeError):
            object.__setattr__(row, "__class__", class_of)
    with pytest.raises(TypeError):
        del row.__class__
    assert row == LISBON


def numbers(records):
    return [record.n for record in records]


@taiyen.record(name="test.Number")
class Number:
    n: int
    text: taiyen.text(3) = ""


def test_slices_are_as_a_lists(heap):
    """PY19. What is stored may be rows of the same list: all is copied before anything goes. Records were lost once."""

    def same(change, size=6):
        plain, heap.root["r"] = [Number(i) for i in range(size)], [Number(i) for i in range(size)]
        reported = []
        for one in (plain, heap.root["r"]):
            try:
                reported.append(change(one))
            except (TypeError, ValueError, IndexError) as error:
                reported.append(type(error))
        assert numbers(heap.root["r"]) == numbers(plain) and reported[0] == reported[1], change

    def assign(index, make_items):
        return lambda r: r.__setitem__(index, make_items(r))

    def swap(r):
        r[0], r[1] = r[1], r[0]
        r[2], r[2] = r[2], r[2]
        r[-1], r[1], r[3] = r[1], r[3], r[-1]

    def held(r):
        old = r[0]
        r[0] = Number(9)
        r[1:3] = [old, old, old]
        return numbers([old, *r])

    for index in (slice(None), slice(0, 2), slice(3, 1), slice(2, None), slice(None, None, -1), slice(None, None, 2),
                  slice(4, 0, -2), slice(9, 12)):  # fmt: skip
        for items in (lambda r: r[:], lambda r: sorted(r, key=lambda one: -one.n), lambda r: [one for one in r if one.n % 2],
                      lambda r: r[0:2], lambda r: [r[5], r[5], Number(7)], lambda r: [], lambda r: r):  # fmt: skip
            same(assign(index, items))
        same(lambda r, index=index: r.__delitem__(index))
    same(swap)
    same(held)
    for seed in range(20):
        same(lambda r, seed=seed: random.Random(seed).shuffle(r), size=9)
    same(lambda r: r.__setitem__(slice(0, 2), r[4:]) or r.__setitem__(0, r[-1]) or r.reverse() or numbers(r))


@pytest.mark.parametrize("index", [slice(1, 3), slice(None, None, 2), slice(None, None, -3), slice(5, 1, -2), slice(4, 2)])
def test_rows_stay_when_a_slice_is_deleted(heap, index):
    heap.root["r"] = [Number(i) for i in range(7)]
    r, left = heap.root["r"], list(range(7))
    rows = list(r)
    changes = lambda: heap.stats()["lsn"] if heap.kind == "transactional" else len(heap.history())
    before = changes()
    del r[index]
    del left[index]
    assert [row.n for row in rows if row.is_alive] == left == [row.n for row in r]
    assert all(r[place] is rows[number] for place, number in enumerate(left))
    assert changes() - before <= 1


def test_what_is_refused_leaves_all(heap):
    heap.root["r"] = [Number(i) for i in range(6)]
    r = heap.root["r"]
    rows = r[:]
    for index in (slice(0, 2), slice(None), slice(None, None, 2), slice(None, None, -1)):
        for items in (["bad"], [Number(1), None, Number(2)], [Number(1), Number("x"), Number(3)]):
            with pytest.raises(TypeError):
                r[index] = items
    with pytest.raises(ValueError):
        r[::2] = [Number(1)]
    assert numbers(r) == [0, 1, 2, 3, 4, 5] and all(row.is_alive for row in rows)
    view = memoryview(r)
    with pytest.raises(taiyen.LiveViewsError):
        r[0:2] = [Number(1)]
    r[0:2] = r[1::-1]
    assert numbers(r) == [1, 0, 2, 3, 4, 5]
    del view


def test_a_row_that_is_replaced(heap):
    """It is what it was, as an item of a list that another one took the place of; it is in the heap no more."""
    heap.root["r"] = [Number(1, "a"), Number(2, "b"), Number(3, "c")]
    r = heap.root["r"]
    one, two, three = r
    r[0] = r[0]
    assert one.is_alive and r[0] is one
    r[0] = two
    assert one == Number(1, "a") and not one.is_alive and one.heap is None and taiyen.plain(one) == Number(1, "a")
    assert two.is_alive and r[1] is two and r[0] == two and r[0] is not two
    with pytest.raises(taiyen.DeletedError):
        one.n = 5
    r[1:2] = [one, one]
    assert numbers(r) == [2, 1, 1, 3] and two.n == 2 and not two.is_alive and three.is_alive and r[3] is three
    heap.root["again"] = one
    assert heap.root["again"] == Number(1, "a")
    if heap.kind == "transactional":
        with pytest.raises(KeyError), heap.transaction():
            r[:] = r[::-1]
            raise KeyError
        assert numbers(r) == [2, 1, 1, 3]
    elif heap.history():
        heap.undo()
        heap.undo()
        assert numbers(r) == [2, 2, 3]


def test_classes_that_are_none():
    for fields, error in {"x: list": TypeError, "x: str": TypeError, "pass": TypeError, "x: taiyen.text(0)": TypeError,
                          "x: taiyen.text(70000)": TypeError, "__slots__ = ('x',)\n x: int": TypeError,
                          "x: taiyen.text(60000)\n y: taiyen.text(6000)": TypeError}.items():  # fmt: skip
        with pytest.raises(error, match="Point"):
            make(f"@taiyen.record\nclass Point:\n {fields}")
    later = make("from __future__ import annotations\n@taiyen.record\nclass Point:\n x: taiyen.f4 = 1.5\n"
                 " def twice(self):\n  return self.x * 2")  # fmt: skip
    heap = taiyen.volatile()
    heap.root["p"] = later()
    assert heap.root["p"].twice() == 3.0 and heap.root["p"] != LISBON
    heap.close()


CITIES = st.builds(City, st.text(max_size=5).filter(lambda text: "\0" not in text and text.isprintable()),
                   st.floats(allow_nan=False), st.integers(0, 2**32 - 1), st.booleans())  # fmt: skip
NUMBERS = st.integers(-8, 8)
SLICES = st.builds(slice, st.one_of(st.none(), NUMBERS), st.one_of(st.none(), NUMBERS),
                   st.one_of(st.none(), st.integers(-3, 3).filter(bool)))  # fmt: skip


def test_an_index_is_counted_from_the_end_within_the_change(path):
    """PY30. Not before the change has waited for another thread's transaction: another record would be deleted."""
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        numbers = heap.records("numbers", Number)
        numbers.extend(Number(i) for i in range(5))
        inside, waits = threading.Event(), threading.Event()

        def insert():
            with heap.transaction():
                numbers.insert(0, Number(9))
                inside.set()
                waits.wait()
                while heap._busy == 0:  # until the other one is in its begin
                    time.sleep(0)

        other = threading.Thread(target=insert)
        other.start()
        inside.wait()
        waits.set()
        del numbers[-1]
        other.join()
        assert [one.n for one in numbers] == [9, 0, 1, 2, 3]
        with pytest.raises(IndexError):
            del numbers[5]
        with pytest.raises(IndexError):
            del numbers[-6]
        with pytest.raises(TypeError, match="list indices must be integers or slices, not str"):
            numbers["a"]
        assert numbers[-1].n == 3 and [one.n for one in numbers[::-2]] == [3, 1, 9]


def test_a_slice_is_of_one_moment(heap):
    """No code of the program runs between its rows."""
    numbers = heap.records("numbers", Number)
    numbers.extend(Number(i) for i in range(100))

    def take(*_):
        if numbers:
            sys.setprofile(None)
            numbers.pop()
            sys.setprofile(take)

    sys.setprofile(take)
    try:
        found = numbers[:]
    finally:
        sys.setprofile(None)
    assert len(found) == 100 > len(numbers)  # the profile function has run before it and after it
    assert [one.n for one in found[:len(numbers)]] == list(range(len(numbers)))


class Lists(RuleBasedStateMachine):
    """Records beside a list; rows that were taken out before stay with their records."""

    def __init__(self):
        super().__init__()
        self.heap = taiyen.volatile()
        self.heap.root["it"] = taiyen.records(City)
        self.real, self.model = self.heap.root["it"], []
        self.rows = {}

    def both(self, function):
        results = []
        for it in (self.real, self.model):
            try:
                results.append(taiyen.plain(function(it)))
            except (IndexError, ValueError) as error:
                results.append(type(error))
        assert results[0] == results[1], results

    @invariant()
    def equal(self):
        assert self.real == self.model and len(self.real) == len(self.model)
        for row, city in self.rows.values():
            if any(one is city for one in self.model):
                assert row.is_alive and row == city
                assert self.real[next(i for i, one in enumerate(self.model) if one is city)] is row
            else:
                assert not row.is_alive

    @rule(city=CITIES)
    def append(self, city):
        self.both(lambda it: it.append(copy.copy(city)))

    @rule(cities=st.lists(CITIES, max_size=6))
    def extend(self, cities):
        self.model.extend(map(copy.copy, cities))
        self.real.extend(cities)

    @rule(number=NUMBERS, city=CITIES)
    def insert(self, number, city):
        self.both(lambda it: it.insert(number, copy.copy(city)))

    @rule(number=NUMBERS)
    def keep_row(self, number):
        if -len(self.model) <= number < len(self.model):
            self.rows[id(self.model[number])] = self.real[number], self.model[number]

    @rule(number=NUMBERS, people=st.integers(0, 99))
    def change(self, number, people):
        self.both(lambda it: setattr(it[number], "people", people))

    @rule(number=NUMBERS)
    def erase(self, number):
        self.both(lambda it: it.__delitem__(number))

    @rule(number=NUMBERS)
    def pop(self, number):
        self.both(lambda it: it.pop(number))

    @rule(part=SLICES)
    def slices(self, part):
        self.both(lambda it: it[part])
        self.both(lambda it: it.__delitem__(part))

    @rule(part=SLICES.filter(lambda part: part.step in (None, 1)), cities=st.lists(CITIES, max_size=3))
    def set_slice(self, part, cities):
        cities = list(map(copy.copy, cities))
        self.both(lambda it: it.__setitem__(part, cities))

    @rule(city=CITIES)
    def find(self, city):
        self.both(lambda it: (city in it, it.count(city)))
        self.both(lambda it: it.index(city))

    @rule()
    def order(self):
        self.both(lambda it: it.sort(key=lambda city: (city.name, city.people)))
        self.both(lambda it: it.reverse())

    def teardown(self):
        assert self.heap.verify() == []
        self.heap.close()


TestLists = Lists.TestCase
