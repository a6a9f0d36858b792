"""Goal: each container does what its built-in does, errors included. Method: state machines of Hypothesis; after each step
the two are equal, and at the end the heap's values are sound."""

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


TestDicts = Dicts.TestCase
TestLists = Lists.TestCase
TestSets = Sets.TestCase
TestDeques = Deques.TestCase
TestDictsWithUndo = DictsWithUndo.TestCase
TestListsWithUndo = ListsWithUndo.TestCase
