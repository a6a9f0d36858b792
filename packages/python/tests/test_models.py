"""Goal: each container does what its built-in does, errors included; and nothing is freed that is used, nor kept that is not,
whatever leads to what. Method: state machines of Hypothesis; after each step the two are equal, or the heap's values sound."""

import gc
import math
from collections import deque

import taiyen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

KEYS = st.one_of(st.integers(-3, 12), st.text(max_size=9), st.tuples(st.integers(0, 2), st.text(max_size=8)),
                 st.sampled_from([None, 1.0, True, 2**60, 2.5, b"bytes of a key"]))  # fmt: skip
ITEMS = st.one_of(KEYS, st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=8), st.integers(), max_size=3))
NUMBERS = st.integers(-12, 12)
ENDS = st.one_of(st.none(), NUMBERS)
SLICES = st.builds(slice, ENDS, ENDS, st.one_of(st.none(), st.integers(-3, 3).filter(bool)))


class Both(RuleBasedStateMachine):
    """A container in a heap, and its model."""

    empty: object = None
    kind = "volatile"

    def __init__(self):
        super().__init__()
        self.heap = taiyen.volatile()
        if self.kind == "undo":
            with self.heap.step():
                pass
        self.heap.root["it"] = self.empty
        self.real = self.heap.root["it"]
        self.model = self.empty.copy()

    def both(self, function):
        """The results, or classes of the exceptions, are the same."""
        results = []
        for it in (self.real, self.model):
            try:
                results.append(taiyen.plain(function(it)))
            except (KeyError, IndexError, ValueError, TypeError) as error:
                results.append(type(error))
        real, model = results
        if real is self.real:
            real, model = None, None
        assert real == model and (type(real) is type(model)), (real, model)

    @invariant()
    def equal(self):
        assert self.real == self.model and len(self.real) == len(self.model) and bool(self.real) == bool(self.model)
        assert self.as_row(self.real) == self.as_row(self.model)

    def as_row(self, it):
        return list(it)

    def teardown(self):
        assert self.heap.verify() == []
        self.real = None  # its proxy would keep it
        self.heap.root.clear()
        if self.kind == "volatile":  # what stays is the heap's own, and the keys that packed dicts have had
            assert self.heap.stats()["live_blocks"] <= 60
        self.heap.close()


class Dicts(Both):
    empty = {}

    def as_row(self, it):
        return list(it.items())

    @rule(key=KEYS, item=ITEMS)
    def set(self, key, item):
        self.both(lambda it: it.__setitem__(key, item))

    @rule(key=KEYS)
    def look(self, key):
        self.both(lambda it: (key in it, it.get(key), it.get(key, "other")))
        self.both(lambda it: it[key])

    @rule(key=KEYS)
    def erase(self, key):
        self.both(lambda it: it.__delitem__(key))

    @rule(key=KEYS, item=ITEMS)
    def pop(self, key, item):
        self.both(lambda it: it.pop(key, item))
        self.both(lambda it: it.pop(key))

    @rule()
    def popitem(self):
        self.both(lambda it: it.popitem())

    @rule(key=KEYS, item=ITEMS)
    def setdefault(self, key, item):
        self.both(lambda it: taiyen.plain(it.setdefault(key, item)))

    @rule(items=st.dictionaries(KEYS, ITEMS, max_size=12))
    def update(self, items):
        self.both(lambda it: it.update(items))
        self.both(lambda it: it | items)
        self.both(lambda it: items | it)

    @rule()
    def views(self):
        self.both(lambda it: (list(reversed(it)), list(it.values()), list(reversed(it.items())), repr(it)))
        self.both(lambda it: it.keys() & {1, "a"})

    @rule()
    def clear(self):
        self.both(lambda it: it.clear())


class Lists(Both):
    empty = []

    @rule(item=ITEMS)
    def append(self, item):
        self.both(lambda it: it.append(item))

    @rule(items=st.lists(ITEMS, max_size=5))
    def extend(self, items):
        self.both(lambda it: it.extend(items))
        self.both(lambda it: it + items)

    @rule(number=NUMBERS, item=ITEMS)
    def insert(self, number, item):
        self.both(lambda it: it.insert(number, item))

    @rule(number=NUMBERS, item=ITEMS)
    def set(self, number, item):
        self.both(lambda it: it.__setitem__(number, item))

    @rule(number=NUMBERS)
    def take(self, number):
        self.both(lambda it: it[number])
        self.both(lambda it: it.pop(number))

    @rule(number=NUMBERS)
    def erase(self, number):
        self.both(lambda it: it.__delitem__(number))

    @rule(part=SLICES)
    def slices(self, part):
        self.both(lambda it: it[part])

    @rule(part=SLICES, items=st.lists(ITEMS, max_size=4))
    def set_slice(self, part, items):
        self.both(lambda it: it.__setitem__(part, items))

    @rule(part=SLICES)
    def erase_slice(self, part):
        self.both(lambda it: it.__delitem__(part))

    @rule(item=ITEMS)
    def find(self, item):
        self.both(lambda it: (item in it, it.count(item)))
        self.both(lambda it: it.index(item))
        self.both(lambda it: it.remove(item))

    @rule()
    def turn(self):
        self.both(lambda it: it.reverse())
        self.both(lambda it: (list(reversed(it)), repr(it)))

    @rule()
    def sort(self):
        self.both(lambda it: it.sort(key=repr))

    @rule(times=st.integers(-1, 2))
    def times(self, times):
        self.both(lambda it: it * times)

    @rule(items=st.lists(st.integers(), max_size=3))
    def compare(self, items):
        self.both(lambda it: it == items)
        self.both(lambda it: it < items)

    @rule()
    def clear(self):
        self.both(lambda it: it.clear())


class Sets(Both):
    empty = set()

    def as_row(self, it):
        return len(list(it))

    @rule(key=KEYS)
    def add(self, key):
        self.both(lambda it: it.add(key))

    @rule(key=KEYS)
    def discard(self, key):
        self.both(lambda it: (key in it, it.discard(key)))

    @rule(key=KEYS)
    def remove(self, key):
        self.both(lambda it: it.remove(key))

    @rule(keys=st.sets(KEYS, max_size=6))
    def algebra(self, keys):
        self.both(lambda it: (it & keys, it | keys, it - keys, it ^ keys, keys - it if keys else set(), it.union(keys)))
        self.both(lambda it: (it <= keys, it < keys, it >= keys, it == keys, it.isdisjoint(keys), it.issubset(keys)))

    @rule(keys=st.sets(KEYS, max_size=6))
    def update(self, keys):
        self.both(lambda it: it.update(keys))

    @rule(keys=st.sets(KEYS, max_size=6))
    def reduce(self, keys):
        self.both(lambda it: it.difference_update(keys))
        self.both(lambda it: it.symmetric_difference_update(keys))

    @rule(keys=st.sets(KEYS, max_size=20))
    def keep(self, keys):
        self.both(lambda it: it.intersection_update(keys))

    @rule()
    def pop(self):
        if self.model:
            self.model.remove(self.real.pop())
        else:
            self.both(lambda it: it.pop())


class Deques(Both):
    empty = deque()

    @rule(item=ITEMS)
    def append(self, item):
        self.both(lambda it: it.append(item))

    @rule(item=ITEMS)
    def appendleft(self, item):
        self.both(lambda it: it.appendleft(item))

    @rule()
    def pop(self):
        self.both(lambda it: it.pop())

    @rule()
    def popleft(self):
        self.both(lambda it: it.popleft())

    @rule(number=NUMBERS, item=ITEMS)
    def items(self, number, item):
        self.both(lambda it: it[number])
        self.both(lambda it: it.__setitem__(number, item))
        self.both(lambda it: it.insert(number, item))

    @rule(number=NUMBERS)
    def erase(self, number):
        self.both(lambda it: it.__delitem__(number))

    @rule(items=st.lists(ITEMS, max_size=4), steps=st.integers(-5, 5))
    def extend(self, items, steps):
        self.both(lambda it: it.extend(items))
        self.both(lambda it: it.extendleft(items))
        self.both(lambda it: it.rotate(steps))
        self.both(lambda it: it.reverse())

    @rule(item=ITEMS)
    def find(self, item):
        self.both(lambda it: (item in it, it.count(item), repr(it)))
        self.both(lambda it: it.remove(item))


class DictsWithUndo(Dicts):
    kind = "undo"


class ListsWithUndo(Lists):
    kind = "undo"


PLACES = st.integers(0, 30)
NAMES = st.sampled_from(["a key of some length", "another one of some length", "c", (1, "in a tuple of some length"), 5])


class Objects(RuleBasedStateMachine):
    """What leads to each other, in the heap and outside: parts that are stored twice, rings, keys that are one in the heap and
    not in Python, and changes that fail when all for them is made."""

    kind = "volatile"

    def __init__(self):
        super().__init__()
        self.heap = taiyen.volatile()
        self.made = [None, "a text of some length", 2**70, object()]  # built-in ones, and the heap's
        self.start()

    def start(self):
        for number in range(3):  # shapes are known
            self.heap.root[str(number)] = {"c": [number], "d": "a text of some length"}
        self.heap.root.clear()
        self.before = self.heap.stats()["live_blocks"]

    def one(self, place):
        return self.made[place % len(self.made)]

    def try_it(self, function):
        try:
            function()
        except (TypeError, IndexError, ValueError, KeyError, AttributeError):
            pass

    @rule(kind=st.sampled_from([list, tuple, deque, dict, set]), places=st.lists(PLACES, max_size=4),
          names=st.lists(NAMES, max_size=4))  # fmt: skip
    def make(self, kind, places, names):
        parts = [self.one(place) for place in places]
        if kind is dict:
            parts = zip([*names, float("nan"), (math.nan, *names), float("nan")], parts)
        self.made.append(kind(parts) if kind is not set else {*names, float("nan"), (float("nan"), *names)})

    @rule(place=PLACES, other=PLACES)
    def tie(self, place, other):
        for change in (lambda it: it.append(self.one(other)), lambda it: it.__setitem__("c", self.one(other))):
            if not isinstance(self.one(place), type(self.heap.root)):
                self.try_it(lambda: change(self.one(place)))

    @rule(name=NAMES, place=PLACES)
    def store(self, name, place):
        self.try_it(lambda: self.heap.root.__setitem__(name, self.one(place)))

    @rule(name=NAMES, place=PLACES)
    def look(self, name, place):
        found = self.heap.root.get(name)
        self.made.append(found)
        if isinstance(found, (dict, list)):  # and a part of it
            parts = list(found.values()) if isinstance(found, dict) else list(found)
            self.made.append(parts[place % len(parts)] if parts else None)

    @rule(place=PLACES, index=NUMBERS, item=PLACES)
    def change_items(self, place, index, item):
        it, item = self.one(place), self.one(item)
        self.try_it(lambda: it.__setitem__(index, item))
        self.try_it(lambda: it.__setitem__(slice(index, None, 2), [item, [item]]))
        self.try_it(lambda: it.extend([[item], item, self.one(index)]))
        self.try_it(lambda: it.insert(index, item))
        self.try_it(lambda: it.pop(index))

    @rule(place=PLACES, names=st.lists(NAMES, max_size=3), places=st.lists(PLACES, min_size=5, max_size=5))
    def change_pairs(self, place, names, places):
        it = self.heap.root if place % 3 else self.one(place)
        items = [self.one(place) for place in places]
        self.try_it(lambda: it.update(zip([*names, float("nan"), (1, math.nan, *names), float("nan")], items)))
        self.try_it(lambda: it.setdefault(names[0], items[0]))
        self.try_it(lambda: it.pop(names[-1]))

    @rule(name=NAMES)
    def erase(self, name):
        self.try_it(lambda: self.heap.root.pop(name))

    @rule(count=st.integers(0, 8))
    def forget(self, count):
        del self.made[4 + count :]

    @rule()
    def collect(self):
        self.heap.collect()

    @invariant()
    def sound(self):
        assert self.heap.verify() == []

    def teardown(self):
        self.made = None
        gc.collect()
        self.heap.root.clear()
        self.heap.collect()
        assert self.heap.verify() == []
        if self.kind == "volatile":  # what stays is the heap's own, and keys of packed dicts
            assert self.heap.stats()["live_blocks"] <= self.before + 60
        self.heap.close()


class ObjectsWithUndo(Objects):
    """And each change may be taken back, and made again."""

    kind = "undo"

    def start(self):
        with self.heap.step():
            pass
        super().start()

    @rule(times=st.integers(1, 3))
    def undo(self, times):
        for _ in range(times):
            self.try_undo(self.heap.undo)
        self.try_undo(self.heap.redo)

    def try_undo(self, function):
        try:
            function()
        except taiyen.NotFoundError:
            pass

    def try_it(self, function):
        try:
            super().try_it(function)
        except taiyen.DeletedError:
            pass


TestObjects = Objects.TestCase
TestObjectsWithUndo = ObjectsWithUndo.TestCase
TestDicts = Dicts.TestCase
TestLists = Lists.TestCase
TestSets = Sets.TestCase
TestDeques = Deques.TestCase
TestDictsWithUndo = DictsWithUndo.TestCase
TestListsWithUndo = ListsWithUndo.TestCase
