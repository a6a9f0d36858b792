"""Goal: every value comes back as it was stored. Method: each type, also at its limits, through each kind of heap."""

import collections
import copy
import datetime
import decimal
import enum
import gc
import json
import math
import pathlib
import pickle
import uuid
import zoneinfo
from collections import deque

import pytest
import taiyen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MOMENT = datetime.datetime(2026, 11, 27, 12, 30, 1, 5)
SCALARS = [
    None, True, False, 0, -1, 2**47, 2**48 - 1, 2**48, -(2**48), -(2**48) - 1, 2**63, -(2**63), 2**64, 10**400, -(10**50),
    0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324, 1e308, 3 + 4j, "", "a", "sixsix", "seven77", "ä", "日本語" * 9,
    "\x00zero\x00", "\ud800 alone", "x" * 100_000, b"", b"bytes", b"\x00" * 7, b"long" * 999, (), (1, "a", (2.5, None)),
    MOMENT, MOMENT.replace(tzinfo=datetime.timezone.utc), MOMENT.replace(fold=1), MOMENT.date(), MOMENT.time(),
    MOMENT.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Lisbon")), datetime.timedelta(days=-3, microseconds=1),
    decimal.Decimal("1.50"), decimal.Decimal("-Infinity"), uuid.UUID(int=2**127 + 5),
]  # fmt: skip


def test_value(heap):
    heap.root["values"] = SCALARS
    for value, back in zip(SCALARS, heap.root["values"], strict=True):
        assert back == value and type(back) is type(value) and repr(back) == repr(value)


def test_nan(heap):
    heap.root["nan"] = math.nan
    assert math.isnan(heap.root["nan"])


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: repr(value)[:30])
def test_key(value):
    with taiyen.volatile() as heap:
        try_key(heap, value)


def try_key(heap, value):
    aware = getattr(value, "tzinfo", None) is not None
    if isinstance(value, decimal.Decimal) or aware or getattr(value, "fold", 0):
        with pytest.raises(TypeError):
            heap.root[value] = 1
        with pytest.raises(TypeError):
            value in heap.root
        return
    assert value not in heap.root
    heap.root[value] = "found"
    assert heap.root[value] == "found" and value in heap.root and list(heap.root) == [value]
    heap.root[value] = 2
    assert len(heap.root) == 1
    nested = (value, (value, 1))
    heap.root[nested] = 3
    assert heap.root[nested] == 3 and (value, (value, 2)) not in heap.root
    del heap.root[value]
    assert value not in heap.root and heap.root == {nested: 3}


def test_equal_numbers_are_one_key(heap):
    heap.root[1] = "first"
    heap.root[True] = heap.root[1.0] = heap.root[1 + 0j] = "last"
    assert heap.root == {1: "last"} and type(next(iter(heap.root))) is int
    heap.root[2**70] = "big"
    assert heap.root[float(2**70)] == "big"


def test_keys_that_differ_in_fold_are_no_two(heap):
    """Moments that differ in fold are equal, and were two keys."""
    for one in (MOMENT, MOMENT.time()):
        other = one.replace(fold=1)
        heap.root["d"], heap.root["s"] = {one: 1}, {one}
        for use in (lambda: heap.root["d"].__setitem__(other, 2), lambda: other in heap.root["d"],
                    lambda: heap.root["s"].add(other), lambda: heap.root.update(x={other: 1}),
                    lambda: heap.root.update(x={other}), lambda: heap.root.update(x={(1, other): 1})):  # fmt: skip
            with pytest.raises(TypeError):
                use()
        heap.root["v"] = [other]
        assert heap.root["d"] == {one: 1} and heap.root["s"] == {one} and heap.root["v"][0].fold == 1


def test_keys_are_stored_as_what_they_are(heap):
    """0j is found as 0, and came back as 0.0."""
    for key in (0j, 0.5 + 0j, -0.0, 7.0, True):
        heap.root["d"], heap.root["s"] = {key: 1, 3: 3}, {key}
        heap.root["e"] = {}
        heap.root["e"][key] = 1
        for stored in (heap.root["d"], heap.root["s"], heap.root["e"]):
            assert repr(next(iter(stored))) == repr(key) and key in stored and key + 0j in stored and key.real in stored
        heap.root["e"][key.real] = 2
        assert repr(heap.root["e"]) == repr({key: 2})
        heap.root["s"].add(key.real)
        assert repr({key.real} | heap.root["s"]) == repr({key.real} | {key})
        assert repr(heap.root["s"] | {key.real}) == repr({key} | {key.real})


def test_zones(heap, tmp_path):
    offset = datetime.timedelta(hours=1, seconds=7)
    zones = [datetime.timezone(offset), datetime.timezone(offset, "CET"), datetime.timezone.utc, zoneinfo.ZoneInfo("UTC"),
             datetime.timezone(offset, "a|b|=ä"), datetime.timezone(offset, "=x"), datetime.timezone(-offset, "\ud800"),
             datetime.timezone(datetime.timedelta(0), ""), zoneinfo.ZoneInfo("Europe/Lisbon")]  # fmt: skip
    for zone in zones:
        for moment in (MOMENT.replace(tzinfo=zone), MOMENT.replace(tzinfo=zone, fold=1), MOMENT.timetz().replace(tzinfo=zone)):
            heap.root["m"] = moment
            assert repr(heap.root["m"]) == repr(moment) and heap.root["m"].tzname() == moment.tzname()
    class Own(datetime.tzinfo):
        def utcoffset(self, moment):
            return offset
    folder = next((one for one in zoneinfo.TZPATH if (pathlib.Path(one) / "Europe/Berlin").exists()), None)
    unnamed = []
    if folder:
        with open(pathlib.Path(folder) / "Europe/Berlin", "rb") as file:
            unnamed = [zoneinfo.ZoneInfo.from_file(file)]
    for zone in (Own(), *unnamed):  # without a name that others know
        with pytest.raises(TypeError, match="datetime.* whose zone has no name"):
            heap.root["m"] = MOMENT.replace(tzinfo=zone)


@pytest.mark.parametrize("key", [[], {}, ([],), {1}, decimal.Decimal(1)])
def test_no_key(heap, key):
    for use in (heap.root.get, heap.root.__contains__, heap.root.__delitem__, heap.root.__getitem__):
        with pytest.raises(TypeError):
            use(key)
    with pytest.raises(TypeError):
        heap.root[key] = 1
    assert heap.root == {}


Pair = collections.namedtuple("Pair", "x y")


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Name(str):
    pass


@pytest.mark.parametrize("key", [Pair(1, 2), (Pair(1, 2), 3), frozenset([1]), range(3), Name("n"), Level.LOW, Colour.RED,
                                 int, object()], ids=lambda key: type(key).__name__)  # fmt: skip
def test_keys_that_no_heap_takes(heap, key):
    """PY22. A nested dict, and heap.array, took those that a lookup takes: of a tuple's the heap had an address of the
    interpreter's memory, of a frozenset's a value that nobody reads."""
    stores = [lambda: heap.root.__setitem__(key, 1), lambda: heap.root.__setitem__("x", {key: 1, "other": [1]}),
              lambda: heap.root.update(x=[{"deep": {key: [1]}}]), lambda: heap.root.__setitem__("x", [{"a", key}]),
              lambda: heap.array(key, 3), lambda: heap.root.setdefault("x", {key})]  # fmt: skip
    for pickles in (False, True):
        if pickles:
            heap = taiyen.volatile(pickle=True)
        for store in stores:
            with pytest.raises(TypeError):
                store()
        assert heap.root == {} and key not in heap.root and heap.root.get(key) is None and heap.verify() == []
        with pytest.raises(KeyError):
            del heap.root[key]


def test_keys_that_no_heap_takes_find_their_equals(heap):
    heap.root["d"] = {(1, 2): "pair", ((1, 2), 3): "deep"}
    found = heap.root["d"]
    assert found[Pair(1, 2)] == "pair" and [found[Pair(1, 2), 3] for _ in range(50)] == ["deep"] * 50
    assert (Colour.RED, 1) not in found and Colour.RED not in found
    found[Pair(1, 2)] = 1
    assert found == {(1, 2): 1, ((1, 2), 3): "deep"} and [type(key) for key in found] == [tuple, tuple]


def test_unsupported_type_names_the_path(heap):
    blocks = heap.stats()["live_blocks"]
    with pytest.raises(TypeError, match=r"value\['a'\]\[3\]\['x'\].*module"):
        heap.root["bad"] = {"a": [1, [2], ({"t": [1]}, "long enough text"), {"x": json}], "long enough": 2}
    assert heap.root == {} and heap.verify() == []
    assert heap.stats()["live_blocks"] <= blocks + 3  # nothing was left behind but room that is used again


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


def test_pickles(path):
    with taiyen.open(path, pickle=True) as heap:
        heap.root["point"] = [Point(5)]
        assert heap.root["point"][0] == Point(5)
    with taiyen.open(path) as heap:
        with pytest.raises(TypeError, match="pickle=True"):
            heap.root["point"][0]


def test_sharing_and_rings(heap):
    shared = [1]
    ring = {"self": None, "shared": shared}
    ring["self"] = ring
    heap.root["a"] = [shared, shared, ring]
    a = heap.root["a"]
    a[0].append(2)
    assert a[0] is a[1] is a[2]["shared"] and a[1] == [1, 2] and a[2]["self"] is a[2]
    plain = taiyen.plain(a)
    assert plain[0] is plain[1] and plain[2]["self"] is plain[2] and type(plain[2]) is dict
    del heap.root["a"], a
    assert heap.collect() >= 1 and heap.verify() == []


def test_friends(heap):
    heap.root.update({"d": {"x": [1, (2, [3])]}, "s": {1}, "q": deque([1])})
    heap.root["again"] = heap.root["d"]
    assert heap.root["again"] is heap.root["d"]
    assert json.loads(json.dumps(heap.root["d"], default=taiyen.plain)) == {"x": [1, [2, [3]]]}
    deep = copy.deepcopy(heap.root)
    assert type(deep) is dict and type(deep["d"]["x"][1][1]) is list and type(deep["s"]) is set
    assert type(deep["q"]) is deque
    assert pickle.loads(pickle.dumps(heap.root["d"])) == {"x": [1, (2, [3])]}
    shallow = copy.copy(heap.root)
    assert type(shallow) is dict and shallow["d"] is heap.root["d"]
    match heap.root:
        case {"d": {"x": [1, (2, [last])]}, **rest}:
            assert last == 3 and set(rest) == {"s", "q", "again"}
        case _:
            pytest.fail("no match")


def test_of_another_heap(heap):
    with taiyen.volatile() as other:
        other.root["x"] = {"deep": [1, {2}]}
        heap.root["copy"] = other.root["x"]
        other.root["x"]["deep"].append(3)
        assert heap.root["copy"] == {"deep": [1, {2}]}


def test_parts_of_another_heap_that_are_one(heap):
    """PY7. Within something else that was stored, they were several."""
    with taiyen.volatile() as other:
        part = [1, 2]
        other.root["x"] = {"a": part, "b": part}
        heap.root["alone"] = other.root["x"]
        heap.root["within"] = [1, (other.root["x"], 2)]
        heap.root.update(updated=other.root["x"])
    for it in (heap.root["alone"], heap.root["within"][1][0], heap.root["updated"]):
        assert it["a"] is it["b"]


def test_deep(heap):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        heap.root["deep"] = deep
    heap.root["list"] = []
    at = heap.root["list"]
    for _ in range(3000):
        at.append([])
        at = at[0]
    with pytest.raises(RecursionError):
        taiyen.plain(heap.root["list"])
    del heap.root["list"], at
    assert heap.root == {}


KEYS = st.one_of(st.text(), st.integers(), st.binary(), st.floats(allow_nan=False), st.booleans(), st.none())
VALUES = st.recursive(
    st.one_of(KEYS, st.complex_numbers(allow_nan=False), st.decimals(allow_nan=False), st.datetimes(), st.uuids()),
    lambda more: st.one_of(st.lists(more), st.dictionaries(KEYS, more), st.tuples(more, more), st.sets(KEYS)),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(VALUES)
def test_any_value(value):
    with taiyen.volatile() as heap:
        heap.root["v"] = value
        assert heap.root["v"] == value and taiyen.plain(heap.root["v"]) == value
        assert heap.verify() == []


def test_pairs_that_are_kept_stay(heap):
    heap.root["d"] = {number: f"a text of {number}" for number in range(50)}
    items = iter(heap.root["d"].items())
    first = next(items)
    second = next(items)
    gc.collect()
    assert first == (0, "a text of 0") and second == (1, "a text of 1") and next(items) == (2, "a text of 2")
    kept = [pair for pair in items]
    assert kept == [(number, f"a text of {number}") for number in range(3, 50)] and first[0] == 0


def test_an_iteration_notices_a_rollback(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["d"] = {"a": 1, "b": 2, "c": 3}
        before = iter(heap.root["d"])
        next(before)
        with pytest.raises(ZeroDivisionError), heap.transaction():
            heap.root["d"]["d"] = 4
            within = iter(heap.root["d"].items())
            next(within)
            1 / 0
        assert list(before) == ["b", "c"] and heap.root["d"] == {"a": 1, "b": 2, "c": 3}
        with pytest.raises(RuntimeError):
            list(within)


def rows(count, name="k"):
    return [{name: number, "tags": ["a", {"of": number}], "at": (1.5, None)} for number in range(count)]


def test_what_is_met_again_is_one(heap):
    shared, held = [1], {"in": 1}
    for number in range(4):  # the shapes are known from the second one on
        heap.root["all"] = [{"a": shared, "b": 1}, {"a": shared, "b": 2}, deque([shared, held]), (shared, held), [held],
                            *rows(3)]  # fmt: skip
        there = heap.root["all"]
        there[0]["a"].append(2)
        there[4][0]["in"] = 7
        assert there[1]["a"] == there[2][0] == there[3][0] == [1, 2] and there[3][1] == there[2][1] == {"in": 7}
        assert there[0]["a"] is there[1]["a"] and there[5:] == rows(3)
    ring = {"ring": None, "rest": rows(2)}
    ring["ring"] = [{"up": ring}]
    heap.root["all"] = ring
    assert heap.root["all"]["ring"][0]["up"] is heap.root["all"]
    del heap.root["all"]
    assert heap.collect() >= 3 and heap.root == {}


@taiyen.record
class Pixel:
    x: int


def test_arrays_and_records_that_are_met_again_are_one(heap):
    """PY7. They were copies, and so was what another heap has."""
    numpy = pytest.importorskip("numpy")
    other = taiyen.volatile()
    other.root.update(list=[1], small={"a": 1}, set={1}, array=numpy.arange(3), records=[Pixel(1)], deep=[[2]])
    for one in (numpy.arange(3), bytearray(b"abc"), [Pixel(1)], taiyen.records(Pixel), *other.root.values()):
        before = heap.stats()["live_blocks"]
        for failing in (lambda: (one, (one, object())), lambda: [one, {"a": (one, object())}], lambda: ([one], one, object())):
            with pytest.raises(TypeError):
                heap.root["bad"] = failing()
        assert heap.stats()["live_blocks"] <= before + 8 and "bad" not in heap.root  # a layout
        heap.root["x"] = {"a": one, "b": [one, (one, 1)]}
        there = heap.root["x"]
        assert there["a"] is there["b"][0] is there["b"][1][0] and heap.verify() == []
        plain = taiyen.plain(there)
        assert plain["a"] is plain["b"][0] is plain["b"][1][0]
        for copied in (copy.deepcopy(there), pickle.loads(pickle.dumps(there)), heap.root.pop("x")):
            assert copied["a"] is copied["b"][0]
        heap.root["l"] = []
        heap.root["l"].extend([one, one])
        assert heap.root["l"][0] is heap.root["l"][1]
    assert other.root["list"] == [1] and "b" not in other.root["small"]
    other.close()


def test_small_ones_are_packed_as_they_are_stored():
    heap = taiyen.volatile()
    heap.root["before"] = rows(2)
    before = heap.stats()
    heap.root["list"] = rows(1000)
    held = rows(1000)
    heap.root["held"] = held
    heap.root["extended"] = []
    heap.root["extended"].extend(held)
    heap.root["each"] = []
    for row in held:
        heap.root["each"].append(row)
    after = heap.stats()
    assert after["live_blocks"] - before["live_blocks"] <= 4020 and heap.root["list"] == held == heap.root["each"]
    assert after["used_bytes"] - before["used_bytes"] < 4 * 1000 * 70  # nothing took room that was given back
    assert heap.verify() == []
    heap.close()


def test_proxies_of_what_is_unpacked(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        for _ in range(3):
            heap.root["rows"] = rows(3)
        tags, of = heap.root["rows"][1]["tags"], heap.root["rows"][2]["tags"][1]
        with pytest.raises(ZeroDivisionError), heap.transaction():
            heap.root["rows"][0]["k"] = 7  # unpacks all of them
            assert heap.root["rows"][1]["tags"] is tags and heap.root["rows"][2]["tags"][1] is of
            tags.append("more")
            assert heap.root["rows"][1]["tags"] == tags == ["a", {"of": 1}, "more"] and of == {"of": 2}
            1 / 0
        assert tags == ["a", {"of": 1}] and of == {"of": 2} and heap.root["rows"] == rows(3)
        assert heap.root["rows"][1]["tags"] is tags and heap.root["rows"][2]["tags"][1] is of
        of["of"] = 9
        assert heap.root["rows"][1]["tags"] is tags and heap.root["rows"][2]["tags"][1] is of
        assert heap.root["rows"][2] == {"k": 2, "tags": ["a", {"of": 9}], "at": (1.5, None)}


def test_keys_to_look_for_make_nothing(path):
    keys = [("a tuple", "of some length", (1, 2**70)), "a key of some length", b"bytes of some length", 2**70, 1 + 2j,
            uuid.UUID(int=5)]  # fmt: skip
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["set"] = {"a member of some length"}
        heap.root.update({key: 1 for key in keys[::2]})
        before = heap.stats()
        for _ in range(3):
            for key in keys:
                assert (key in heap.root) == (heap.root.get(key) == 1) == (key in keys[::2])
                assert key not in heap.root["set"]
        after = heap.stats()
        assert (after["live_blocks"], after["lsn"]) == (before["live_blocks"], before["lsn"])
    with taiyen.open(path, readonly=True) as heap:
        assert [key in heap.root for key in keys] == [True, False] * 3


def test_keys_of_a_transaction_that_was_rolled_back(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        for name in "abc":
            with pytest.raises(ZeroDivisionError), heap.transaction():
                heap.root["x"] = rows(5, name)
                1 / 0
            heap.root["y"] = rows(5, name + "2")
            heap.root["z"] = rows(5, name)
            assert heap.root["y"] == rows(5, name + "2") and heap.root["z"] == rows(5, name)
        assert heap.verify() == []


def test_keys_that_come_once_leave_nothing():
    heap = taiyen.volatile()
    heap.root["x"] = [{"key": 1}]
    before = heap.stats()["live_blocks"]
    for number in range(500):
        heap.root["x"] = [{f"a key of its own {number}": 1}, {f"another {number}": [number]}]
    assert heap.stats()["live_blocks"] <= before + 80  # keys that were used last are kept
    heap.close()


def test_a_failed_store_leaves_nothing(heap):
    heap.root["rows"] = rows(3)
    before = heap.stats()["live_blocks"]
    for bad in ([*rows(3), object()], {"a": rows(3), "b": [[], object()]}, [rows(100), {1: object()}],
                deque([rows(3), (rows(2), object())])):  # fmt: skip
        with pytest.raises(TypeError):
            heap.root["bad"] = bad
        with pytest.raises(TypeError):
            heap.root["rows"].extend([rows(3), bad])
    assert heap.stats()["live_blocks"] <= before + 12 and heap.root == {"rows": rows(3)}


def test_what_is_made_and_not_stored_leaves_nothing(heap):
    """PY4. Rings stayed, and what they led to counted a store too many: their place was looked for when they were made."""
    heap.root.update(list=[1, 2, 3], deque=deque([1]), dict={"there": 1}, own=[], part=["a text of some length"])
    it = heap.root
    before = []
    for _ in range(3):
        for ring in ([], deque()):
            ring.extend(["another text", it["part"], (ring, [ring]), {"of two": ["letters", ring]}])
            for index in (9, -9):
                with pytest.raises(IndexError):
                    it["list"][index] = ring
                with pytest.raises(IndexError):
                    it["deque"][index] = [ring]
            with pytest.raises(ValueError):
                it["list"][::2] = [ring, ring, [ring], 4]
            with pytest.raises(TypeError):
                it["dict"][frozenset()] = ring
            with pytest.raises(TypeError):
                it["dict"].update({"new": ring, frozenset(): ring})
            assert heap.verify() == []
        gc.collect()
        before.append(heap.stats()["live_blocks"])
    assert before[1] == before[2] and it["list"] == [1, 2, 3] and it["dict"] == {"there": 1}
    heap.root["part"].append("it is whole")
    assert heap.verify() == []


def test_what_an_update_releases_has_a_key_of_it(heap):
    """PY31. The key's block went with the value that was replaced, and was stored all the same."""
    for replaced in (1, "another text of some length", [2], {"key": 3}):
        heap.root.clear()
        heap.root["it"] = {}
        heap.root["it"]["a key of some length"] = 1
        heap.root.update({"it": replaced, "a key of some length": 2})
        assert heap.verify() == [] and heap.root == {"it": replaced, "a key of some length": 2}


def nans(items):
    """A dict whose keys Python distinguishes, and a heap does not."""
    return {key: item for item in items for key in (float("nan"), (1, float("nan"), SHARED), complex(1, math.nan))}


SHARED = ("a text of some length", 2**70)


@pytest.mark.parametrize("store", ["within", "update", "setdefault", "set"])
def test_keys_that_python_distinguishes(heap, store):
    """They are one key. What stood for the first of them was freed when the second came, and used all the same; their
    tuples stayed in the heap."""
    shared = [1, "one more text"]
    ring = [shared]
    ring.append(ring)
    items = [shared, "a text of some length", ring, {"small": [1]}, (shared, 1), 5, ring, [shared, ring], "the last text"]
    before = heap.stats()["live_blocks"]
    for _ in range(3):
        if store == "within":
            heap.root["it"] = [{**nans(items), "again": shared}, ring]
            it, again = heap.root["it"][0], heap.root["it"][0].pop("again")
        elif store == "update":
            heap.root["it"] = {}
            heap.root["it"].update(nans(items[:1]))  # that are there
            heap.root["it"].update({**nans(items), "again": shared})
            it, again = heap.root["it"], heap.root["it"].pop("again")
        elif store == "setdefault":
            it, again = heap.root.setdefault("it", nans(items)), shared
        else:
            heap.root["it"] = {*nans(items)}
            heap.root["it"].update(nans(items))
            it, again = dict.fromkeys(heap.root["it"], "the last text"), shared
        assert len(it) == 3 and set(it.values()) == {"the last text"} and again == shared
        assert heap.verify() == []
        del it
        heap.root.clear()
        heap.collect()
    assert heap.verify() == [] and (heap.kind != "volatile" or heap.stats()["live_blocks"] < before + 12)
