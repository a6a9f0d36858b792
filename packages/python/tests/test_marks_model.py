"""PY37. Goal: after any marks and returns each object stands for its container, or for nothing. Method: a model in which
every container has a number of its own, which its objects have to show."""

import copy
import gc
import shutil
import tempfile

import taiyen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from test_marks import made

NAMES = st.sampled_from("abcd")
PLACES = st.integers(0, 40)


class Going(RuleBasedStateMachine):
    """Each container has a number, which nothing else has: {"number": N, ...} or [N, ...]. An object of the heap shows
    its number, or that it was deleted."""

    kind = "volatile"

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.heap = made(self.kind, f"{self.folder}/it.ty")
        self.model, self.marks, self.attempts, self.numbers, self.objects = {}, {}, [], 0, []

    def number(self):
        self.numbers += 1
        return self.numbers

    def some(self, place):
        """Of the model, and of the heap."""
        model, real = self.model, self.heap.root
        while isinstance(model, (dict, list)):
            parts = [key for key in (model if isinstance(model, dict) else range(len(model)))
                     if isinstance(model[key], (dict, list))]  # fmt: skip
            if not parts or place % 3 == 0:
                break
            key = parts[place % len(parts)]
            model, real, place = model[key], real[key], place // 2
        return model, real

    def look(self, model, real):
        if model is not self.model:
            self.objects.append((model["number"] if isinstance(model, dict) else model[0], real))

    @rule(place=PLACES, name=NAMES, what=st.sampled_from(["dict", "list", "large", "number"]))
    def store(self, place, name, what):
        value = {"dict": lambda: {"number": self.number(), "of": [self.number(), 1.5]},
                 "list": lambda: [self.number(), {"number": self.number()}, "a text of some length"],
                 "large": lambda: {"number": self.number(), **{f"key {at}": at for at in range(70)}},
                 "number": lambda: self.number()}[what]()  # fmt: skip
        model, real = self.some(place)
        for it in (model, real):
            if isinstance(model, dict):
                it[name] = copy.deepcopy(value)
            else:
                it.append(copy.deepcopy(value))
        self.look(model, real)

    @rule(place=PLACES, name=NAMES)
    def erase(self, place, name):
        model, real = self.some(place)
        self.look(model, real)
        for it in (model, real):
            if isinstance(model, dict):
                it.pop(name, None)
            else:
                del it[1:2]

    @rule(name=NAMES, size=st.integers(1, 3000))
    def store_array(self, name, size):
        number = self.number()
        self.heap.root["array " + name] = memoryview(number.to_bytes(4, "little") * size)
        self.model["array " + name] = (number, size)
        self.objects.append((number, self.heap.root["array " + name]))

    @rule(name=NAMES)
    def erase_array(self, name):
        self.heap.root.pop("array " + name, None)
        self.model.pop("array " + name, None)

    @rule(place=PLACES)
    def take(self, place):
        self.look(*self.some(place))

    @rule(count=st.integers(0, 5))
    def forget(self, count):
        del self.objects[count:]

    @rule(name=NAMES)
    def mark(self, name):
        if name in self.marks:
            self.heap.drop_mark(name)
        self.heap.mark(name)
        self.marks[name] = copy.deepcopy(self.model)

    @precondition(lambda self: self.marks)
    @rule(place=PLACES)
    def go(self, place):
        name = sorted(self.marks)[place % len(self.marks)]
        self.heap.return_to(name)
        self.model = copy.deepcopy(self.marks[name])

    @precondition(lambda self: self.marks)
    @rule(place=PLACES)
    def drop(self, place):
        name = sorted(self.marks)[place % len(self.marks)]
        self.heap.drop_mark(name)
        del self.marks[name]

    @rule()
    def begin_attempt(self):
        self.attempts.append((self.heap.attempt().__enter__(), copy.deepcopy(self.model)))

    @precondition(lambda self: self.attempts)
    @rule(fails=st.booleans())
    def end_attempt(self, fails):
        tried, before = self.attempts.pop()
        tried.__exit__(KeyError if fails else None, None, None)
        if fails:
            self.model = before

    @precondition(lambda self: self.kind == "transactional")
    @rule(place=PLACES, name=NAMES, fails=st.booleans())
    def transaction(self, place, name, fails):
        before = copy.deepcopy(self.model)
        transaction = self.heap.transaction(wait=False).__enter__()
        self.store(place, name, "list")
        self.erase(place // 2, name)
        transaction.__exit__(KeyError if fails else None, None, None)
        if fails:
            self.model = before

    @precondition(lambda self: self.kind == "undo")
    @rule(redoes=st.booleans())
    def undo(self, redoes):
        try:
            self.heap.undo()
            if redoes:
                self.heap.redo()
        except taiyen.NotFoundError:
            pass
        self.model = taiyen.plain(self.heap.root)  # whatever the history has
        for name, array in self.model.items():
            if name.startswith("array "):
                content = bytes(array)
                self.model[name] = (int.from_bytes(content[:4], "little"), len(content) // 4)

    @rule()
    def collect(self):
        gc.collect()
        self.heap.collect()

    @invariant()
    def objects_are_what_they_were(self):
        for number, real in self.objects:
            try:
                if isinstance(real, taiyen.Array):
                    now = int.from_bytes(bytes(taiyen.plain(real))[:4], "little")
                else:
                    now = real["number"] if isinstance(real, taiyen.Dict) else real[0]
            except taiyen.DeletedError:
                continue
            assert now == number

    @invariant()
    def equal(self):
        expected = {name: memoryview(value[0].to_bytes(4, "little") * value[1]) if name.startswith("array ") else value
                    for name, value in self.model.items()}  # fmt: skip
        found = taiyen.plain(self.heap.root)
        assert {name: bytes(value) if name.startswith("array ") else value for name, value in found.items()} == expected
        assert self.heap.verify() == []
        attempts = [tried.name for tried, _ in self.attempts]
        assert [mark.name for mark in self.heap.marks()] == sorted([*self.marks, *attempts])

    def teardown(self):
        self.objects = None
        gc.collect()
        self.heap.root.clear()
        assert self.heap.verify() == []
        self.heap.close()
        shutil.rmtree(self.folder)


def model_of(kind):
    return type(f"Going{kind.capitalize()}", (Going,), {"kind": kind}).TestCase


TestGoing = model_of("volatile")
TestGoingInFiles = model_of("snapshot")
TestGoingWithUndo = model_of("undo")
TestGoingWithTransactions = model_of("transactional")
