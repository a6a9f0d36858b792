"""Code that runs in the middle of an operation, at each place where it can: the process does not end, and the heap stays sound.

CPython up to 3.11 runs its collector in allocations, later ones between two bytecodes; what it frees may have a finaliser. Others run where
the last reference to an object goes, where objects are compared, hashed, pickled, used as an index or iterated over, and where a weak
reference's object goes. Each operation is done again and again: the collector runs at its first allocation, then at its second
and so on; the same with the calls of Python code. What runs does ACTION, the worst that a program could do there.

    python collectors.py KIND ACTION FOLDER
"""

import collections
import datetime
import faulthandler
import gc
import itertools
import os
import pickle
import sys
import uuid
import weakref

import taiyen

ALLOCATIONS = int(os.environ.get("TAIYEN_ALLOCATIONS", "12"))
CALLS = int(os.environ.get("TAIYEN_CALLS", "6"))
fuse = None  # what the next piece of code that runs in an operation does, and how many are let by before


@taiyen.record
class Place:
    name: taiyen.text(12)
    when: datetime.datetime
    x: float = 0.0

    def __del__(self):
        burn()


def burn():
    """Code within an operation."""
    global fuse
    if fuse is None:
        return
    left, action = fuse
    fuse = None if left == 0 else (left - 1, action)
    if left == 0:
        try:
            action()
        except Exception:  # refused, as in an operation that goes on
            pass


class Ring:
    """Goes with the collector alone."""

    def __init__(self):
        self.me = self

    def __del__(self):
        burn()


class Bomb:
    """Stored by pickle: a new one each time that it is read."""

    def __init__(self, number=0):
        self.number = number

    def __del__(self):
        burn()

    def __eq__(self, other):
        burn()
        return isinstance(other, Bomb) and self.number == other.number

    def __lt__(self, other):
        burn()
        return self.number < other.number

    def __hash__(self):
        burn()
        return self.number

    def __index__(self):
        burn()
        return self.number

    def __reduce__(self):
        burn()
        return Bomb, (self.number,)


class Number(int):
    def __hash__(self):
        burn()
        return int.__hash__(self)

    def __eq__(self, other):
        burn()
        return int(self) == other

    def __index__(self):
        burn()
        return int(self)


def rows(count):
    return [Place(f"p{i}", datetime.datetime(2000, 1, 1 + i), float(i)) for i in range(count)]


def content():
    """What is there before each operation: all kinds, packed and not, shared, with holes that Python code fills."""
    key = uuid.UUID(int=5)
    return {
        "list": [[1], {"a": [2]}, (3, datetime.date(2000, 1, 1)), "a text of some length", 2**80, "\ud800 half"],
        "rows": [{"a": [i], "b": {"c": i}} for i in range(6)],
        "dict": {"a": {"b": [1]}, 1: [2], key: "uuid", (1, key): {"t": [1]}, None: 2**70, "\udc00": "half"},
        "set": {1, "two", (3, "x"), key, 2**70},
        "deque": collections.deque([[1], {"a": 1}, "text of some length", (1, 2)]),
        "bombs": [Bomb(i) for i in range(3)],
        "tuple": ([1], Bomb(1), {"a": 2}),
        "places": taiyen.records(Place, rows(5)),
        "place": rows(1)[0],
        "array": memoryview(bytes(range(64))).cast("d"),
        "big": {str(i): i for i in range(40)},
    }


def sort_places(root):
    root["places"].sort(key=lambda row: (burn(), -row.x)[1])


def iterate(of):
    return [one for one in of]


def slip(rows_given):
    """Rows that are looked up where others go."""
    kept = rows_given[0]
    watcher = weakref.ref(rows_given[1], lambda _: (burn(), rows_given[1]))
    del watcher
    return kept, [row.x for row in rows_given]


def last_look(rows_given):
    """A weak reference's callback looks up the row that is going."""
    found = []
    row = rows_given[1]
    watcher = weakref.ref(row, lambda _: (burn(), found.append(rows_given[1])))
    del row
    return watcher, [one.x for one in found]


class Given:
    """An iterable whose items come of code."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        for item in self.items:
            burn()
            yield item


READS = {
    "root": lambda root: root["rows"],
    "nested": lambda root: [[row["a"], row["b"]] for row in root["rows"]],
    "get": lambda root: root.get("dict").get("a").get("b"),
    "plain": lambda root: taiyen.plain(root["rows"]),
    "plain all": lambda root: taiyen.plain(root),
    "dict of": lambda root: [dict(row) for row in root["rows"]],
    "items": lambda root: [(key, item) for key, item in root["dict"].items()],
    "items of root": lambda root: list(root.items()),
    "keys": lambda root: iterate(root["dict"]),
    "values": lambda root: list(root["dict"].values()),
    "reversed": lambda root: list(reversed(root["dict"])),
    "repr": lambda root: repr(root["dict"]),
    "slice": lambda root: root["list"][1:],
    "list": lambda root: iterate(root["list"]),
    "list item": lambda root: [root["list"][Number(i)] for i in range(6)],
    "list back": lambda root: list(reversed(root["list"])),
    "set": lambda root: iterate(root["set"]),
    "set in": lambda root: [key in root["set"] for key in (1, Number(1), (3, "x"), 2**70, "\ud800", uuid.UUID(int=5))],
    "dict in": lambda root: [key in root["dict"] for key in (1, (1, uuid.UUID(int=5)), "\udc00", 2**70, Number(1), 3 + 0j)],
    "set equal": lambda root: root["set"] == {1, Number(2)},
    "deque": lambda root: iterate(root["deque"]),
    "deque plain": lambda root: root["deque"]._plain(),
    "index": lambda root: root["bombs"].index(Bomb(2)),
    "count": lambda root: root["bombs"].count(Bomb(1)),
    "contains": lambda root: Bomb(7) in root["bombs"],
    "find container": lambda root: root["rows"].index({"a": [4], "b": {"c": 4}}),
    "bombs": lambda root: list(root["bombs"]),
    "bombs plain": lambda root: taiyen.plain(root["bombs"]),
    "tuple": lambda root: root["tuple"],
    "row": lambda root: root["places"][2].when,
    "rows": lambda root: [(row.name, row.x) for row in root["places"]],
    "rows plain": lambda root: taiyen.plain(root["places"]),
    "rows slip": lambda root: slip(root["places"]),
    "rows last": lambda root: last_look(root["places"]),
    "place": lambda root: (root["place"].name, taiyen.plain(root["place"])),
    "place index": lambda root: root["places"].index(rows(3)[2]),
    "array": lambda root: root["array"].tolist(),
    "array view": lambda root: memoryview(root["array"]).tolist(),
    "equal": lambda root: root["rows"] == taiyen.plain(root["rows"]),
    "history": lambda root: root.heap.history(),
    "stats": lambda root: (root.heap.stats(), root.heap.map(), root.heap._layouts()),
    "pickle": lambda root: pickle.dumps(root["dict"]),
}
CHANGES = {
    "store": lambda root: root["dict"].__setitem__("new", [{"a": [1]}, {"a": [2]}, "\ud800", 2**90]),
    "store over": lambda root: root.__setitem__("rows", [{"a": [i]} for i in range(3)]),
    "store bombs": lambda root: root.__setitem__("bombs", [Bomb(1), {"b": Bomb(2)}, (Bomb(3), 1j)]),
    "store own": lambda root: root.__setitem__("again", [root["list"], (root["dict"], Bomb(1)), root["rows"][1]]),
    "store keys": lambda root: root.__setitem__("k", {(1, uuid.UUID(int=7)): Bomb(1), 2**80: 1j, 3j: Bomb(2), "\udfff": 1}),
    "store set": lambda root: root.__setitem__("s", {(1, 2), 2**80, "\ud801", uuid.UUID(int=1)}),
    "store deque": lambda root: root.__setitem__("q", collections.deque([Bomb(1), [1], "\ud801"])),
    "store array": lambda root: root.__setitem__("array", memoryview(bytes(80)).cast("d")),
    "store records": lambda root: root.__setitem__("places", rows(4)),
    "store one": lambda root: root.__setitem__("place", rows(1)[0]),
    "update": lambda root: root["dict"].update({"x": Bomb(1), (1, 2): [1], "a": {"n": 1}, 2**80: 1, "\ud800": 2}),
    "setdefault": lambda root: [root["dict"].setdefault(key, [Bomb(1)]) for key in ("a", (5, "new"), Number(1))],
    "del": lambda root: root["dict"].__delitem__("a"),
    "pop": lambda root: [root["dict"].pop(key) for key in ("a", (1, uuid.UUID(int=5)), Number(1))],
    "pop all": lambda root: root.pop("tuple"),
    "popitem": lambda root: [root["dict"].popitem() for _ in range(4)],
    "clear": lambda root: root["rows"].clear(),
    "append": lambda root: [root["list"].append(one) for one in ([1], Bomb(1), {"a": "\ud800"})],
    "extend": lambda root: root["list"].extend(Given([[1], Bomb(2), {"a": 1}, "\ud800"])),
    "insert": lambda root: root["list"].insert(Number(2), {"a": [Bomb(1)]}),
    "set item": lambda root: root["list"].__setitem__(Number(1), [Bomb(1)]),
    "set slice": lambda root: root["list"].__setitem__(slice(1, 3), Given([[1], Bomb(1), 2])),
    "set steps": lambda root: root["list"].__setitem__(slice(0, 4, 2), [[1], Bomb(1)]),
    "del slice": lambda root: root["list"].__delitem__(slice(0, 5, 2)),
    "list pop": lambda root: [root["list"].pop(Number(0)) for _ in range(5)],
    "bombs pop": lambda root: [root["bombs"].pop() for _ in range(2)],
    "remove": lambda root: root["bombs"].remove(Bomb(1)),
    "remove container": lambda root: root["rows"].remove({"a": [3], "b": {"c": 3}}),
    "sort": lambda root: root["bombs"].sort(),
    "sort by": lambda root: root["rows"].sort(key=lambda row: (burn(), -row["a"][0])[1]),
    "reverse": lambda root: root["rows"].reverse(),
    "repeat": lambda root: root["list"].__imul__(Number(2)),
    "set add": lambda root: [root["set"].add(key) for key in ((5, 6), 2**90, "\ud800", uuid.UUID(int=9), 1)],
    "set update": lambda root: root["set"].update([(5, 6), 2**90], Given([1, "\ud800"])),
    "set keep": lambda root: root["set"].intersection_update([Number(1), (3, "x"), 2**70]),
    "set toggle": lambda root: root["set"].symmetric_difference_update([1, (7, 8), 2**70]),
    "set take": lambda root: [root["set"].discard(key) for key in (1, (3, "x"), 2**70, Number(4))],
    "set pop": lambda root: [root["set"].pop() for _ in range(3)],
    "deque append": lambda root: [root["deque"].append([Bomb(1)]), root["deque"].appendleft("\ud800")],
    "deque pop": lambda root: [root["deque"].pop(), root["deque"].popleft()],
    "deque extend": lambda root: root["deque"].extend(Given([[1], Bomb(1)])),
    "deque insert": lambda root: root["deque"].insert(Number(1), [Bomb(1)]),
    "deque rotate": lambda root: root["deque"].rotate(Number(1)),
    "deque remove": lambda root: root["deque"].remove({"a": 1}),
    "row set": lambda root: setattr(root["places"][1], "x", Number(5)),
    "row name": lambda root: setattr(root["places"][1], "name", "\ud800"),
    "rows insert": lambda root: root["places"].insert(1, rows(1)[0]),
    "rows extend": lambda root: root["places"].extend(Given(rows(3))),
    "rows set": lambda root: root["places"].__setitem__(1, root["places"][3]),
    "rows slice": lambda root: root["places"].__setitem__(slice(1, 3), [root["places"][4], *rows(2)]),
    "rows del": lambda root: root["places"].__delitem__(slice(0, 4, 2)),
    "rows pop": lambda root: [root["places"].pop() for _ in range(2)],
    "rows remove": lambda root: root["places"].remove(rows(3)[2]),
    "rows sort": sort_places,
    "rows reverse": lambda root: root["places"].reverse(),
    "new array": lambda root: root.heap.array("fresh", (Number(3),), "f4") is None,
    "move": lambda root: root.__setitem__("moved", root.pop("rows")),
    "move proxy": lambda root: (lambda one: (root.__delitem__("list"), root.__setitem__("moved", one)))(root["list"]),
    "collect": lambda root: root.heap.collect(),
    "ring": lambda root: (root["list"].append(root["list"]), root.__delitem__("list"), root.heap.collect()),
    "snapshot": lambda root: root.heap.snapshot(),
    "attempt": lambda root: try_it(root),
    "return": lambda root: (root.heap.mark("there"), root["rows"].append([1]), root.heap.return_to("prepared"),
                            root.heap.return_to("there"), root.heap.drop_mark("there")),
}  # fmt: skip


def try_it(root):
    """Rows and parts of what is packed go back, and so does one who holds the last reference to some."""
    with root.heap.attempt(), root.heap.attempt() as tried:
        held = [root["places"][0], root["rows"][1]["b"]]
        root["places"].pop()
        root["rows"][1]["b"]["c"] = Bomb(1)
        root["dict"]["fresh"] = [held.pop()]
        tried.go_back()
        root["list"].append(1)
        raise KeyError


class Run:
    """One kind of heap, and what code does to it."""

    def __init__(self, kind, action, folder):
        self.kind, self.action, self.folder = kind, getattr(self, "do_" + action), folder
        self.names, self.heap, self.scope, self.kept = itertools.count(), None, None, []
        slow = action == "close" and kind != "volatile"  # each operation has a heap of its own
        self.allocations, self.calls = (6, 3) if slow else (ALLOCATIONS, CALLS)

    def prepare(self):
        """The heap with its content; a new one where the last action has closed it."""
        self.kept.clear()
        if self.heap is None or self.heap.closed:
            if self.kind == "volatile":
                self.heap = taiyen.volatile(pickle=True)
            else:
                path = os.path.join(self.folder, f"{self.kind}-{next(self.names)}.ty")
                self.heap = taiyen.open(path, kind="snapshot" if self.kind == "undo" else self.kind, pickle=True,
                                        log_bytes=1 << 20, limit=1 << 26, undo_bytes=1 << 18)  # fmt: skip
        self.heap.root.clear()
        self.heap.root.update(content())
        if self.kind == "undo":
            self.heap.clear_history()
            with self.heap.step("first"):
                self.heap.root["rows"].append({"a": [6], "b": {"c": 6}})
        if self.kind == "transactional":
            self.scope = self.heap.transaction()
            self.scope.__enter__()
            self.heap.root["rows"].append({"a": [6], "b": {"c": 6}})
        else:
            for mark in self.heap.marks():
                self.heap.drop_mark(mark.name)
            self.heap.mark("prepared")

    def end(self):
        if self.kind == "transactional" and not self.heap.closed and self.heap._in_transaction:
            self.scope.__exit__(None, None, None)

    # ---- What code does.

    def do_replace(self):
        for name, one in content().items():
            self.heap.root[name] = one

    def do_clear(self):
        self.heap.root.clear()

    def do_empty(self):
        for one in list(self.heap.root.values()):
            if hasattr(one, "clear"):
                one.clear()

    def do_grow(self):
        for name in ("dict", "big"):
            self.heap.root[name].update({f"key {i}": [i] for i in range(60)})
        for name in ("list", "rows", "deque", "bombs"):
            self.heap.root[name].extend([[i] for i in range(40)])
        self.heap.root["places"].extend(rows(20))

    def do_look(self):
        """Proxies and rows come and go: tables of these grow."""
        self.heap.root["many"] = [{"a": [i], "b": {}} for i in range(200)]
        self.kept.extend([one, one["a"]] for one in self.heap.root["many"])
        self.kept.append(list(self.heap.root["places"]))
        del self.kept[::2]
        self.heap.root["dict"]["more"] = 1
        self.heap.root["list"].append(1)

    def do_close(self):
        if self.heap.closed:
            return
        if self.kind == "transactional":
            self.heap.discard()
        else:
            self.heap.close()

    def do_rollback(self):
        if self.kind == "undo":
            self.heap.undo()
        elif self.kind == "transactional":
            self.scope.__exit__(KeyError, KeyError("taken back"), None)
        else:
            self.do_clear()
            self.heap.collect()

    def do_redo(self):
        if self.kind == "undo":
            self.heap.undo()
            self.heap.redo()
            self.heap.undo()
        self.heap.root["other"] = [1]

    def do_go_back(self):
        self.heap.return_to("prepared")

    def do_branch(self):
        """What was looked at is elsewhere then, or something else is there."""
        with self.heap.attempt() as tried:
            self.do_replace()
            self.do_grow()
            tried.go_back()
        self.do_replace()

    # ---- Operations.

    def run(self, name, operation, allocations, calls):
        global fuse
        self.prepare()
        root = self.heap.root
        gc.collect()
        if allocations:
            Ring()
            fuse = (0, self.action)
            gc.set_threshold(allocations)
        else:
            fuse = (calls, self.action)
        try:
            operation(root)
        except (taiyen.Error, RuntimeError, LookupError, ValueError, TypeError, AttributeError, BufferError):
            pass
        finally:
            gc.set_threshold(0)
        burnt, fuse = fuse is None, None
        gc.collect()
        if self.heap.closed:
            return burnt
        found = self.heap.verify()
        if found:
            raise AssertionError(f"{name}, {allocations} allocations, {calls} calls: {found[:3]}")
        self.end()
        return burnt

    def all(self):
        for name, operation in {**READS, **CHANGES}.items():
            for allocations in range(1, self.allocations):
                if not self.run(name, operation, allocations, 0):
                    break
            for calls in range(self.calls):
                if not self.run(name, operation, 0, calls):
                    break


ACTIONS = ("replace", "clear", "empty", "grow", "look", "close", "rollback", "redo", "go_back", "branch")
TRIED = [("volatile", action) for action in ACTIONS]  # what is worth its time; by hand there are all others
TRIED += [("undo", "rollback"), ("undo", "redo"), ("transactional", "rollback"), ("transactional", "replace"), ("snapshot", "look"),
          ("undo", "go_back"), ("undo", "branch")]  # fmt: skip

if __name__ == "__main__":
    faulthandler.enable()
    gc.disable()
    gc.set_threshold(0)
    gc.enable()
    sys.unraisablehook = lambda _: None  # what is refused in a finaliser
    one = Run(*sys.argv[1:])
    gc.collect()
    gc.freeze()  # collections look at what is made from now on
    one.all()
    if not one.heap.closed:
        one.heap.close()
