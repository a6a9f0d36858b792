"""Goal: a proxy keeps what it stands for, reads nothing else, and neither Python code in the middle of a call nor another
thread, a signal or the want of memory breaks a heap. Method: the usual ways to move a container, each kind of heap; user code
that changes and closes from within; threads; a model of what is held."""

import copy
import gc
import random
import signal
import subprocess
import sys
import textwrap
from collections import deque

import pytest
import taiyen
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule


def run(program, *arguments):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
                          capture_output=True, text=True, timeout=120)  # fmt: skip


# ---- What has a proxy stays.


def numbered(count):
    return [{"n": number, "more": [number, {"deep": number}]} for number in range(count)]


def test_containers_are_moved_as_in_built_in_ones(heap):
    for of in (numbered, lambda count: [[number] for number in range(count)], lambda count: [{number} for number in range(count)],
               lambda count: [deque([number]) for number in range(count)]):  # fmt: skip
        model = of(6)
        heap.root["l"] = model
        it = heap.root["l"]
        for one in (it, model):
            one[0], one[1] = one[1], one[0]
            random.Random(1).shuffle(one)
            one[::2] = one[::-2]
            one[1:3] = [one[2], one[0], one[1]]
            one[:] = one[::-1]
            moved = list(one)
            one.clear()
            one.extend(moved[::-1])
        assert it == model and heap.verify() == []
    heap.root["d"] = {"a": [1], "b": {"two": 2}, "old": {"in": {"it": [3]}}}
    d = heap.root["d"]
    d["a"], d["b"] = d["b"], d["a"]
    d.update({"a": d["b"], "b": d["a"]})
    it = d["old"]
    del d["old"]
    it["in"]["it"].append(4)
    d["new"] = it
    assert d == {"a": [1], "b": {"two": 2}, "new": {"in": {"it": [3, 4]}}} and d["new"] is it
    kept = d.pop("a"), d["b"]
    d.clear()
    d["b"] = kept[1]
    assert d == {"b": {"two": 2}} and kept[0] == [1] and heap.verify() == []


def test_what_a_failed_slice_was_given_is_whole(heap):
    heap.root["l"] = numbered(4)
    it = heap.root["l"]
    for wrong in (lambda: it.__setitem__(slice(None, None, -1), it[:2]), lambda: it.__setitem__(slice(0, 4, 2), [it[1], object()])):
        with pytest.raises((ValueError, TypeError)):
            wrong()
    it[::-1] = [it[0]["more"], it[1]["more"], it[0], it[2]]
    assert it[1] == numbered(1)[0] and it[3] == [0, {"deep": 0}] and heap.verify() == []


def test_a_part_of_what_was_deleted_stays(heap):
    heap.root["x"] = {"list": [{"n": [1, 2]}], "set": {1}, "big": {number: [number] for number in range(200)}}
    x = heap.root["x"]
    parts = x["list"][0]["n"], x["set"], x["big"][7], x["list"]
    del heap.root["x"]
    assert x.is_alive and x["set"] is parts[1]
    del x
    gc.collect()
    heap.root["other"] = ["a text of some length"] * 50  # takes the room that was given back
    assert (parts[0], parts[1], parts[2], parts[3]) == ([1, 2], {1}, [7], [{"n": [1, 2]}])
    parts[0].append(3)
    assert parts[3][0]["n"] is parts[0] and heap.verify() == []
    heap.root["again"] = list(parts)
    assert heap.root["again"] == [[1, 2, 3], {1}, [7], [{"n": [1, 2, 3]}]] and heap.root["again"][0] is parts[0]
    for _ in range(2):  # the second one is packed
        heap.root["p"] = [{"n": [1, 2, {"deep": "a text of some length"}]}]
    deep = heap.root["p"][0]["n"][2]
    del heap.root["p"]
    heap.root["room"] = [{"n": [9, 9, {"deep": "another of some length"}]} for _ in range(50)]
    assert deep == {"deep": "a text of some length"}
    heap.root["deep"] = deep
    assert heap.root["deep"] is deep and heap.verify() == []


def test_what_nothing_stores_goes_with_its_proxy(heap):
    def blocks():
        heap.root["count"] = 1  # a change
        return heap.stats()["live_blocks"]

    def work():
        heap.root["x"] = {"list": [["a text of some length"], {"of": {1, 2}}]}
        inner, deep = heap.root["x"]["list"], heap.root["x"]["list"][1]["of"]
        del heap.root["x"]
        assert inner[1]["of"] is deep
        del inner
        assert deep == {1, 2}

    for _ in range(5):
        work()
    before = blocks()
    for _ in range(50):
        work()
    if heap.kind == "transactional" or not heap._undo_attached:  # a history holds blocks
        assert blocks() <= before + 2
    assert heap.verify() == []


def test_what_a_kill_leaves_is_collected(path):
    program = """
        import os, sys, taiyen
        heap = taiyen.open(sys.argv[1], kind=sys.argv[2])
        heap.root["x"] = [[number] * 100 for number in range(50)]
        held = list(heap.root["x"])
        heap.root["x"].clear()
        assert held[7] == [7] * 100
        heap.snapshot()
        os.kill(os.getpid(), 9)
    """
    for kind in ("snapshot", "transactional"):
        name = f"{path}-{kind}"
        assert run(program, name, kind).returncode == -signal.SIGKILL
        with taiyen.open(name) as heap:
            assert heap.root == {"x": []} and heap.verify() == []
            before = heap.stats()["live_blocks"]
            assert heap.collect() == 50
            assert heap.stats()["live_blocks"] <= before - 50 and heap.verify() == []
        with taiyen.open(name, readonly=True) as heap:
            assert heap.root == {"x": []}


def test_a_deletion_is_rolled_back_and_undone(path):
    with taiyen.open(f"{path}-t", kind="transactional") as heap:
        heap.root["x"] = {"in": [1]}
        inner = heap.root["x"]["in"]
        with pytest.raises(KeyError), heap.transaction():
            del heap.root["x"]
            inner.append(2)
            heap.root["moved"] = inner
            raise KeyError
        assert heap.root == {"x": {"in": [1]}} and heap.root["x"]["in"] is inner
        with heap.transaction():
            del heap.root["x"]
            inner.append(2)
        heap.root["moved"] = inner
        assert heap.root == {"moved": [1, 2]} and heap.root["moved"] is inner and heap.verify() == []
    with taiyen.open(path) as heap:
        with heap.step("make"):
            heap.root["x"] = {"in": [1]}
        inner = heap.root["x"]["in"]
        with heap.step("delete"):
            del heap.root["x"]
        with heap.step("change"):
            inner.append(2)
        with heap.step("move"):
            heap.root["moved"] = inner
        for _ in range(2):
            heap.undo()  # move
            assert heap.root == {} and inner == [1, 2]
            heap.undo()  # change
            assert heap.root == {} and inner == [1]
            heap.undo()  # delete
            assert heap.root == {"x": {"in": [1]}} and heap.root["x"]["in"] is inner
            heap.undo()  # make
            assert not inner.is_alive and heap.root == {}
            for _ in range(4):
                heap.redo()
            assert heap.root["moved"] is inner and inner == [1, 2] and heap.verify() == []
        del inner
        for _ in range(4):
            heap.undo()
        assert heap.verify() == []
        heap.root["other"] = 1
        assert heap.collect() == 0 and heap.verify() == []


def test_rings_of_which_a_part_has_a_proxy(heap):
    ring = [{"part": [1]}]
    ring.append(ring)
    heap.root["ring"] = ring
    part = heap.root["ring"][0]["part"]
    del heap.root["ring"]
    heap.collect()
    assert part == [1] and heap.verify() == []
    heap.root["part"] = part
    assert heap.root == {"part": [1]} and heap.root["part"] is part


class Holding(RuleBasedStateMachine):
    """Containers that are stored, deleted, moved and held, beside the same of built-in ones."""

    kind = "volatile"

    def __init__(self):
        super().__init__()
        self.heap = taiyen.volatile()
        if self.kind == "undo":
            with self.heap.step():
                pass
        self.model = [[[1], {"a": [2]}], {"x": {"y": [3]}}, [], {}]
        self.heap.root["it"] = self.model
        self.real = self.heap.root["it"]
        self.held = []

    def places(self, it):
        """All containers, in an order that is the same of both."""
        found, seen = [it], {id(it)}
        keep = [it]
        for one in found:
            for part in one.values() if isinstance(one, (dict, taiyen.Dict)) else one:
                keep.append(part)
                if isinstance(part, (list, dict, taiyen.List, taiyen.Dict)) and id(part) not in seen:
                    seen.add(id(part))
                    found.append(part)
        return found

    def pick(self, number):
        real, model = self.places(self.real), self.places(self.model)
        assert len(real) == len(model)
        return real[number % len(real)], model[number % len(model)]

    @rule(number=st.integers(0, 30))
    def hold(self, number):
        self.held.append(self.pick(number))

    @rule(number=st.integers(0, 30))
    def let_go(self, number):
        if self.held:
            self.held.pop(number % len(self.held))

    @rule(number=st.integers(0, 30), which=st.integers(0, 3))
    def delete(self, number, which):
        for one in self.pick(number):
            if len(one):
                if isinstance(one, (list, taiyen.List)):
                    del one[which % len(one)]
                else:
                    del one[list(one)[which % len(one)]]

    @rule(number=st.integers(0, 30), which=st.integers(0, 30), is_front=st.booleans())
    def store(self, number, which, is_front):
        """A held one somewhere, which may make rings."""
        if not self.held:
            return
        real, model = self.pick(number)
        held_real, held_model = self.held[which % len(self.held)]
        if len(self.places(held_model)) > 12:
            return
        for one, held in ((real, held_real), (model, held_model)):
            if isinstance(one, (list, taiyen.List)):
                one.insert(0 if is_front else len(one), held)
            else:
                one["x" if is_front else "new"] = held

    @rule(number=st.integers(0, 30))
    def swap(self, number):
        for one in self.pick(number):
            if isinstance(one, (list, taiyen.List)):
                one[::-1] = one[:]

    @rule(number=st.integers(0, 30), value=st.sampled_from([5, "a text of some length", {"k": [7]}, [{"z": 1}, [2]]]))
    def change(self, number, value):
        for one in self.pick(number):
            if isinstance(one, (list, taiyen.List)):
                one.append(copy.deepcopy(value))
            else:
                one["v"] = copy.deepcopy(value)

    @rule()
    def collect(self):
        self.heap.collect()

    @invariant()
    def equal(self):
        for real, model in [(self.real, self.model), *self.held]:
            assert real.is_alive and shape(real) == shape(model)

    def teardown(self):
        assert self.heap.verify() == []
        self.held = []
        self.heap.root["it"] = self.real = None
        self.heap.collect()
        assert self.heap.verify() == []
        if self.kind == "volatile":
            assert self.heap.stats()["live_blocks"] <= 60
        self.heap.close()


def shape(one):
    """What it is, with numbers for containers that are met again."""
    seen, found = {}, []
    open_ones = [one]
    while open_ones:
        part = open_ones.pop()
        if not isinstance(part, (list, dict, taiyen.List, taiyen.Dict)):
            found.append(part)
            continue
        known = seen.get(id(part))
        found.append(("again", known[0]) if known else (isinstance(part, (dict, taiyen.Dict)), len(part)))
        if known:
            continue
        seen[id(part)] = len(seen), part
        if isinstance(part, (dict, taiyen.Dict)):
            found.extend(part)
            open_ones.extend(part.values())
        else:
            open_ones.extend(part)
    return found


class HoldingWithUndo(Holding):
    kind = "undo"


TestHolding = Holding.TestCase
TestHoldingWithUndo = HoldingWithUndo.TestCase
