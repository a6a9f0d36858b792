"""Looks for leaks: runs each operation many times, and counts references, objects and the heap's blocks before and after.

    python leaks.py [OPERATIONS]      of all together; 10,000,000 takes some minutes

An operation leaves things as they were. What stays after a few rounds is no leak (caches, freed lists of the interpreter); what
grows with their number is.
"""

import copy
import datetime
import gc
import glob
import os
import pickle
import sys
import tempfile
import uuid
from collections import deque

import taiyen

try:
    import numpy
except ImportError:
    numpy = None


@taiyen.record
class Point:
    x: float
    name: taiyen.text(8) = ""


class Other:
    pass


SMALL = {"name": "a place", "lat": 1.5, "tags": ["port", "of a long name"]}
OPERATIONS = {}
SLACK = 30  # what may come and go, of the interpreter's own


def operation(*kinds):
    def add(function):
        OPERATIONS[function.__name__] = function, kinds or ("volatile", "undo", "transactional")
        return function

    return add


def refused(function, *errors):
    try:
        function()
    except errors:
        return
    raise AssertionError("it was not refused")


@operation()
def scalars(d):
    for value in (1, 2**70, 1.5, "a text of some length", b"bytes of some length", None, 1 + 2j, ("a tuple", 2**60)):
        d["x"] = value
        d["x"]
    del d["x"]


@operation()
def rare_scalars(d):
    for value in (datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), uuid.UUID(int=5), datetime.timedelta(1)):
        d["x"] = d[value] = value
        assert d["x"] == d.pop(value)
    del d["x"]


@operation()
def keys(d):
    for key in ("short", "a key of some length", 7, 2**70, 1.5, b"bytes of some length", ("a tuple", "of some length"), 1j):
        d[key] = key
        assert key in d and d.get(key) == key and d.pop(key) == key and d.get(key, 5) == 5


@operation()
def small_dicts(d):
    d["x"] = SMALL
    x = d["x"]
    assert x["tags"][1] == "of a long name"
    x["tags"].append("one more")  # unpacks it
    x["lat"] = 2
    del x, d["x"]


@operation()
def large_dicts(d):
    d["x"] = {number: str(number) * 5 for number in range(70)}
    x = d["x"]
    for number in range(60):
        del x[number]
    assert list(x.items())[0] == (60, "6060606060") and len(x.keys() & {60, 61}) == 2
    x.update({"a": 1}, b=2)
    x.popitem(), x.setdefault("c", []), x.copy(), repr(x), x == {}, x | {}
    x.clear()
    d.pop("x")


@operation()
def lists(d):
    d["x"] = [1, "a text of some length", [2], {"of": 3}]
    x = d["x"]
    x.extend([[4], "another of some length"])
    x[1:3] = [SMALL, SMALL]
    x.insert(0, 5)
    x.sort(key=str)
    x.reverse()
    x[::2] = [None] * len(x[::2])
    x.pop(), x.copy(), repr(x), list(x), list(reversed(x))
    x *= 2
    x.clear()
    del d["x"]


@operation()
def sets_and_deques(d):
    d["x"], d["y"] = {"a", "a member of some length"}, deque([1, [2]])
    x, y = d["x"], d["y"]
    x.add("another member of some length")
    x.discard("a")
    x |= {1, 2}
    x.pop(), x == {1}, repr(x)
    y.append([3]), y.appendleft("a text of some length"), y.rotate(1), y.reverse(), y.insert(1, 5)
    y.pop(), y.popleft(), list(y), repr(y)
    del d["x"], d["y"]


@operation()
def shared_and_rings(d):
    part = [1, "a text of some length"]
    ring = {"part": part, "again": part}
    ring["self"] = ring
    d["x"] = ring
    d["y"] = d["x"]["part"]
    del d["x"], d["y"]
    d.heap.collect()


@operation()
def refused_stores(d):
    for bad in (object(), [1, {"a": "a text of some length", "b": object()}], (SMALL, object()), {("a", object()): 1},
                {1: [object()]}, [Point("no number")], deque([[1], object()]), [[1, 2], [Point(1.0), object()]]):  # fmt: skip
        refused(lambda: d.__setitem__("x", bad), TypeError)
    refused(lambda: d.__setitem__([], 1), TypeError)
    refused(lambda: d["a key that is not there"], KeyError)
    refused(lambda: d.pop(("a key", "not there")), KeyError)
    refused(lambda: d.update({"y": object()}), TypeError)


@operation()
def iterations(d):
    d["x"] = {"a key of some length": "a text of some length", "b": [1]}
    x = d["x"]
    for view in (x, x.keys(), x.values(), x.items(), reversed(x)):
        iterator = iter(view)
        next(iterator)
    kept = [pair for pair in x.items()]
    x["c"] = 1
    refused(lambda: next(iterator), RuntimeError)
    del kept, d["x"]
    assert list(x) == ["a key of some length", "b", "c"]


@operation()
def records(d):
    d["x"] = [Point(1.0, "a"), Point(2.0, "b")]
    d["y"] = Point(3.0)
    x, row = d["x"], d["x"][1]
    row.x = d["y"].x
    x.append(row)
    x.insert(0, d["y"])
    x.extend([Point(4.0)] * 5)
    x.sort(key=lambda point: point.x)
    first, second = x[0], x[3]
    x[0], x[3] = x[3], x[0]
    x[::-1] = x[:]
    x[1:2] = [first, second, Point(5.0)]
    refused(lambda: x.__setitem__(slice(0, 2), [first, 1]), TypeError)
    assert not first.is_alive and repr(first) and repr(second)
    x[1:3] = []
    x.pop(), x[:], repr(x), x == [], taiyen.plain(x)
    refused(lambda: setattr(x[0], "name", "a name that is too long"), OverflowError)
    refused(lambda: x.append(1), TypeError)
    del d["x"], d["y"]
    assert x[0].x >= 1.0  # nothing stores them, but for their proxy


@operation("volatile", "undo")
def arrays(d):
    d["x"] = numpy.arange(100.0)
    view = d["x"].numpy()
    refused(lambda: d.pop("x"), BufferError)
    view[5] = 1
    d["y"] = [Point(1.0)] * 3
    d["y"].numpy()["x"][1] = 5
    del view, d["x"], d["y"]


@operation("pickles")
def pickles(d):
    d["x"] = [Other(), SMALL]
    assert type(d["x"][0]) is Other
    del d["x"]


@operation("transactional")
def transactions(d):
    with d.heap.transaction(wait=False):
        d["x"] = SMALL
        d["y"] = [Point(1.0)]
    row = d["y"][0]

    def failing():
        with d.heap.transaction(wait=False):
            d["x"]["tags"].append(1)
            d["y"].append(row)
            d["z"] = [SMALL, 1]
            1 / 0

    refused(failing, ZeroDivisionError)
    assert row.x == 1.0
    with d.heap.transaction(wait=False):
        del d["x"], d["y"]


@operation("undo")
def undo(d):
    with d.heap.step("one"):
        d["x"] = SMALL
    x = d["x"]
    d.heap.undo()
    d.heap.redo()
    x["lat"]
    d.heap.undo()
    d.heap.history()


@operation("volatile", "undo")
def marks(d):
    d["x"] = SMALL
    x = d["x"]
    d.heap.mark("a")
    x["tags"].append([1])  # unpacks it
    d["y"] = [Point(1.0)]
    y, row = d["y"], d["y"][0]

    def failing():
        with d.heap.attempt(), d.heap.attempt():
            x["lat"] = {"a key of some length": 5}
            1 / 0

    refused(failing, ZeroDivisionError)
    with d.heap.attempt() as tried:
        refused(lambda: d.heap.mark("a"), taiyen.ExistsError)
        tried.go_back()
    d.heap.marks()
    d.heap.return_to("a")
    refused(lambda: row.x, taiyen.DeletedError)
    assert x["tags"][1] == "of a long name" and not y.is_alive
    d.heap.drop_mark("a")
    refused(lambda: d.heap.return_to("a"), taiyen.NotFoundError)
    del d["x"]


@operation("volatile")
def copies(d):
    d["x"] = {"a": [SMALL, (1, [2]), {3}, deque([4])], "b": 2**70}
    copy.copy(d["x"]), copy.deepcopy(d["x"]), pickle.dumps(d["x"]), taiyen.plain(d["x"])
    other = taiyen.volatile(limit=1 << 26)
    other.root["x"] = d["x"]
    d["x"] = other.root["x"]
    other.close()
    del d["x"]


def counts(d):
    gc.collect()
    watched = [None, True, SMALL, Point, Other, taiyen.Dict, taiyen.List, taiyen.Records, taiyen.DeletedError, dict, str,
               TypeError, type(d.heap), type(d), "name", "x", *SMALL.values()]  # fmt: skip
    references = [sys.getrefcount(one) if sys.getrefcount(one) < 2**31 else 0 for one in watched]
    return {"blocks": d.heap.stats()["live_blocks"], "objects": len(gc.get_objects()),
            "memory": sys.getallocatedblocks(), "references": references}  # fmt: skip


def heap_of(kind, folder):
    if kind in ("volatile", "pickles"):
        return taiyen.volatile(pickle=kind == "pickles")
    heap = taiyen.open(f"{folder}/it.ty", kind="transactional" if kind == "transactional" else "snapshot", undo_bytes=1 << 18)
    if kind == "undo":
        with heap.step():
            pass
    return heap


def growth(old, new, rounds):
    """Of each count that grew by more than a few; of memory, more: the interpreter keeps some for what it freed."""
    reported = {what: new[what] - old[what] for what in ("blocks", "objects", "memory")}
    reported["references"] = max(now - before for now, before in zip(new["references"], old["references"]))
    return {what: by for what, by in reported.items() if by > (SLACK if what != "memory" else max(SLACK, rounds // 2))}


def leaks(function, kind, folder, times):
    """What grew with the rounds, each of four times: texts, empty if nothing did."""
    heap = heap_of(kind, folder)
    d = heap.root

    def run(rounds):
        for _ in range(rounds):
            if kind == "transactional" and function is not transactions:
                with heap.transaction(wait=False):
                    function(d)
            else:
                function(d)

    run(max(100, times // 10))
    counted = [counts(d)]
    for _ in range(4):
        run(times // 4)
        counted.append(counts(d))
    grown = [growth(old, new, times // 4) for old, new in zip(counted, counted[1:])]
    reported = [f"{function.__name__} in a heap of kind {kind}, {times} times: {what} grew by {[one[what] for one in grown]}"
            for what in grown[0] if all(what in one for one in grown)]  # fmt: skip
    reported += heap.verify()
    d.clear()
    del d
    heap.close()
    for path in glob.glob(f"{folder}/*"):
        os.unlink(path)
    return reported


def cases():
    """Functions, and the kinds of heaps to run each in."""
    return [(function, kind) for function, kinds in OPERATIONS.values() for kind in kinds if numpy or function is not arrays]


def main(operations):
    all_cases = cases()
    rounds = max(1, operations // len(all_cases) // 20)  # each has some 20 operations
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (function, kind) in enumerate(all_cases, 1):
            reported = leaks(function, kind, folder, rounds)
            bad += bool(reported)
            print(f"{number}/{len(all_cases)} {function.__name__} ({kind}): {'; '.join(reported) or 'no leak'}", flush=True)
    print(f"{len(all_cases) * rounds * 20:,} operations, {bad} leaks")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000))
