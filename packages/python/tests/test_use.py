"""Goal: what notebooks, workers and newcomers do works, or the error says what to do. Method: each as they do it, some in
processes of their own."""

import itertools
import os
import re
import subprocess
import sys
import typing
import warnings

import numpy
import pytest
import taiyen


def run(program, *arguments):
    ended = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended
    return ended.stdout


# ---- Undo.


@pytest.mark.parametrize("change", [lambda root: None, lambda root: root.update(a=5, b=[1]), lambda root: root["d"].clear(),
                                    lambda root: root.pop("d")])  # fmt: skip
def test_a_step_that_fails_leaves_what_can_be_redone(path, change):
    with taiyen.open(path) as heap:
        root = heap.root
        root.update(a=0, d={"x": [1]})
        for number in (1, 2):
            with heap.step(f"step {number}"):
                root["a"] = number
                root["made"] = [number]
        heap.undo()
        heap.undo()
        with pytest.raises(KeyError), heap.step("fails"):
            change(root)
            root["missing"]
        with heap.step("nothing"):
            pass
        with pytest.raises(KeyError):
            del root["missing"]
        with pytest.raises(TypeError):
            root["x"] = object()
        assert [(step.label, step.undone) for step in heap.history()][:2] == [("step 2", True), ("step 1", True)]
        assert root == {"a": 0, "d": {"x": [1]}}
        heap.redo()
        heap.redo()
        assert root == {"a": 2, "d": {"x": [1]}, "made": [2]}
        heap.undo()
        root["a"] = 7  # something else instead
        assert not any(step.undone for step in heap.history()) and heap.verify() == []
        with pytest.raises(taiyen.NotFoundError):
            heap.redo()


def test_objects_that_were_undone_stay_so_when_a_step_ends(path):
    """PY1. What can be redone goes with the end of a step, not with its begin."""
    with taiyen.open(path) as heap:
        with heap.step("makes"):
            heap.root["made"] = [1]
        made = heap.root["made"]
        heap.undo()
        with pytest.raises(ZeroDivisionError), heap.step("fails"):
            heap.root["other"] = [2]
            other = heap.root["other"]
            1 / 0
        heap.redo()
        assert made == [1] and made.is_alive and not other.is_alive
        heap.undo()
        heap.root["instead"] = [3]
        assert not made.is_alive and not other.is_alive and heap.root["instead"] == [3]


def test_another_history_is_said(path):
    with taiyen.open(path, undo_bytes=1 << 20) as heap, heap.step():
        heap.root["x"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taiyen.open(path, undo_bytes=1 << 20).close()
        taiyen.open(path).close()
        with pytest.raises(UserWarning, match=r"clear_history"):
            taiyen.open(path, undo_bytes=1 << 21)
    assert taiyen.opened(path) is None
    with pytest.warns(UserWarning, match=r"heap.ty has steps"), taiyen.open(path, undo_bytes=1 << 21) as heap:
        heap.clear_history()
    with taiyen.open(path, undo_bytes=1 << 21) as heap, heap.step():
        heap.root["x"] = 2


# ---- Notebooks.


def test_a_cell_that_runs_twice(path, tmp_path):
    heap = taiyen.open(path)
    for readonly in (False, True, "copy"):
        with pytest.raises(taiyen.BusyError, match=r"this process has it open.*taiyen\.opened\(path\)") as raised:
            taiyen.open(path, readonly=readonly)
        assert raised.value.path == str(path) and "opened" in raised.value.remedy
    (tmp_path / "link.ty").symlink_to(path)
    with pytest.raises(taiyen.BusyError, match="this process"):
        taiyen.open(tmp_path / "link.ty")
    assert taiyen.opened(path) is heap and taiyen.opened(os.fsencode(path)) is heap
    assert taiyen.opened(tmp_path / "link.ty") is heap
    assert taiyen.opened(tmp_path / "other.ty") is None
    heap.close()
    assert taiyen.opened(path) is None
    heap = taiyen.opened(path) or taiyen.open(path)
    assert (taiyen.opened(path) or taiyen.open(path)) is heap
    heap.close()


def test_elsewhere_is_not_here(path):
    with taiyen.open(path):
        result = run("import sys, taiyen\ntry: taiyen.open(sys.argv[1])\nexcept taiyen.BusyError as error: print(error)\n"
                   "print(taiyen.opened(sys.argv[1]))", path)  # fmt: skip
    assert "close it there" in result and "opened(" not in result and result.endswith("None\n")


def test_views_are_named(path):
    program = """
import numpy, sys, taiyen
heap = taiyen.open(sys.argv[1])
heap.root["maps"] = [{"grid": numpy.zeros((3, 2), "f4")}, 5]
heap.root["row"] = numpy.arange(4)
City = taiyen.record(type("City", (), {"__annotations__": {"lat": float}}))
heap.records("cities", City).append(City(1.0))
part = heap.root["maps"][0]["grid"].numpy()[1:]
Out = {7: heap.root["row"].numpy()}
_7 = Out[7]
table = memoryview(heap.root["cities"])
kept = [memoryview(heap.root["row"])]
print(heap.views())
for close in (heap.close, heap.discard):
    try:
        close()
    except taiyen.LiveViewsError as error:
        print(error)
del part, table, kept, _7
Out.clear()
print(heap.views())
heap.close()
"""
    listed, closed, discarded, after = run(program, path).splitlines()
    for shown in (listed, closed, discarded):
        assert "root['maps'][0]['grid'] <taiyen.Array f 3x2> has 1 view (part)" in shown, shown
        assert "root['row'] <taiyen.Array q 4> has 2 views (Out[7], _7)" in shown
        assert "root['cities'] <taiyen.Records of City, 1> has 1 view (table)" in shown
    assert "%reset -f out" in closed and "delete the arrays" in closed and after == "[]"


def test_views_do_not_hinder_what_does_not_end(path):
    with taiyen.open(path) as heap:
        row = heap.array("row", 4)
        with heap.step("x"):
            heap.root["x"] = 1
        with pytest.raises(taiyen.LiveViewsError, match=r"root\['row'\].*has 1 view"):
            heap.undo()
        with pytest.raises(taiyen.LiveViewsError, match=r"views\(\)"):
            del heap.root["row"]
        del row
        heap.undo()
        assert "x" not in heap.root


# ---- Forks.

CHILD = """
import gc, os, sys, taiyen
path, how = sys.argv[1], sys.argv[2]
heap = taiyen.open(path)
heap.root["x"] = [1]
heap.root["row"] = bytearray(8)
inner = heap.root["x"]
heap.snapshot()
if how == "with a view":
    row = memoryview(heap.root["row"])
if how == "in a transaction":
    pass
child = os.fork()
if not child:
    try:
        if how == "closes":
            heap.close()
            assert heap.closed
        elif how == "discards":
            heap.discard()
        elif how == "forgets":
            del heap, inner
            gc.collect()
        elif how == "says so":
            try:
                inner[0]
            except taiyen.ForkedError as error:
                assert "close()" in error.remedy and "copy" in error.remedy
        elif how == "with a view":
            try:
                taiyen.open(path, readonly="copy")
                os._exit(3)
            except taiyen.BusyError as error:
                assert "Array" in str(error) and "(row)" in str(error), error
            assert row[0] == 0
            del row
        with taiyen.open(path, readonly="copy") as copy:
            assert copy.root["x"] == [1]
        os._exit(0)
    except BaseException as error:
        print(type(error), error, file=sys.stderr)
        os._exit(1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if "row" in globals():
    del row
heap.root["x"].append(2)
heap.close()
sys.exit(code)
"""


@pytest.mark.parametrize("how", ["closes", "discards", "forgets", "says so", "with a view", "just opens"])
def test_a_forked_child_opens(path, how):
    """It could neither close nor open: the parent's copy had the addresses, and the error's advice was refused."""
    run(CHILD, path, how)
    with taiyen.open(path) as heap:
        assert heap.root["x"] == [1, 2] and heap.verify() == []


@pytest.mark.parametrize("kind", ["snapshot", "transactional", "archive"])
def test_a_forked_child_goes_on_when_the_parent_has_closed(path, kind):
    program = """
import os, sys, taiyen
heap = taiyen.open(sys.argv[1], kind=sys.argv[2], log_bytes=1 << 20)
heap.root["x"] = 1
read, write = os.pipe()
child = os.fork()
if not child:
    try:
        heap.close()
        os.read(read, 1)
        with taiyen.open(sys.argv[1]) as heap:
            heap.root["x"] += 1
        os._exit(0)
    except BaseException as error:
        print(type(error), error, file=sys.stderr)
        os._exit(1)
heap.close()
os.write(write, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run(program, path, kind)
    with taiyen.open(path) as heap:
        assert heap.root["x"] == 2 and heap.verify() == []


def test_a_child_of_a_process_with_a_transaction_under_way(path):
    """A thread in the library, and a transaction of a thread, are not in the child."""
    program = """
import os, sys, taiyen, threading
heap = taiyen.open(sys.argv[1], kind="transactional", log_bytes=1 << 20)
begun, done = threading.Event(), threading.Event()
def work():
    with heap.transaction():
        heap.root["x"] = 1
        begun.set()
        done.wait()
threads = [threading.Thread(target=work), threading.Thread(target=lambda: heap.root.update(y=1))]
threads[0].start()
begun.wait()
threads[1].start()
while not heap._busy:
    pass
child = os.fork()
if not child:
    try:
        heap.close()
        os._exit(0)
    except BaseException as error:
        print(type(error), error, file=sys.stderr)
        os._exit(1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done.set()
for thread in threads:
    thread.join()
heap.close()
sys.exit(code)
"""
    run(program, path)


@pytest.mark.parametrize("what", ["with heap: pass", "shelf.close()", "sys.exit()"])
def test_a_child_that_leaves_says_nothing(path, what):
    program = f"""
import os, sys, taiyen
from taiyen import shelf
shelf = shelf.open(sys.argv[1], writeback=True)
heap = shelf.heap
shelf["x"] = [1]
child = os.fork()
if not child:
    {what}
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
shelf.close()
"""
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program, path], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    with taiyen.open(path) as heap:
        assert heap.root == {"x": [1]}


def test_what_runs_after_the_end_is_reported_why(path):
    program = """
import atexit, sys
def late():
    try: heap.root["x"] = 2
    except Exception as error: print(error)
atexit.register(late)
import taiyen
heap = taiyen.open(sys.argv[1])
heap.root["x"] = 1
"""
    assert "atexit" in run(program, path)
    with taiyen.open(path) as heap:
        assert heap.root == {"x": 1}


# ---- Small things.


def test_a_heap_is_as_its_root(heap):
    heap["x"] = {"y": [1]}
    heap["x"]["y"].append(2)
    assert heap["x"] is heap.root["x"] and "x" in heap and "z" not in heap and list(heap) == ["x"]
    del heap["x"]
    with pytest.raises(KeyError):
        heap["x"]
    assert heap and heap.root == {}


@pytest.mark.parametrize("shape", [numpy.int64(3), numpy.uint8(3), (numpy.int32(3), 2), [numpy.int64(2), 3], numpy.array([3, 2]),
                                   numpy.zeros((3, 2)).shape, (), 0, 3])  # fmt: skip
def test_lengths_are_whole_numbers_of_any_type(heap, shape):
    made = heap.array("a", shape, "i4")
    assert made.shape == numpy.zeros(shape).shape
    del made
    assert heap.array("a", shape, "i4").dtype == "i4"
    assert all(type(length) is int for length in heap.root["a"].shape)


@pytest.mark.parametrize("shape, error", [(-1, ValueError), ((2, -3), ValueError), (1.5, TypeError), ("3", TypeError), ((2, 1.5), TypeError),
                                          (numpy.float64(2), TypeError)])  # fmt: skip
def test_lengths_that_are_none(heap, shape, error):
    for _ in range(2):
        with pytest.raises(error, match=re.escape(repr(shape))):
            heap.array("a", shape)
        heap.root.setdefault("b", 1)
    assert "a" not in heap.root


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_an_array_has_numpys_type(heap, dtype):
    heap.root["a"] = numpy.zeros((2, 3), dtype)
    assert heap.root["a"].dtype == numpy.dtype(dtype) == heap.root["a"].numpy().dtype
    assert numpy.asarray(heap.root["a"]).shape == (2, 3) and numpy.array(heap.root["a"], "c16").dtype == "c16"


@pytest.mark.parametrize("array, way", [
    (numpy.zeros(2, [("a", "i4"), ("b", "f8")]), "taiyen.record"), (numpy.array(["x"]), "tolist"), (numpy.array([b"x"]), "tolist"),
    (numpy.array(["2026-01-01"], "M8[s]"), "view\\('i8'\\)"), (numpy.array([1], "m8[s]"), "view\\('i8'\\)"),
    (numpy.array([object()]), "tolist"), (numpy.zeros(2, ">f8"), "newbyteorder"), (numpy.zeros((1,) * 9), "reshape"),
    (numpy.zeros(2, "g"), "astype"),
])  # fmt: skip
def test_refused_arrays_name_a_way(heap, array, way):
    for value in (array, [array], {"k": array}):
        with pytest.raises(TypeError, match=way) as raised:
            heap.root["a"] = value
        assert "no arrays of" in str(raised.value) and "pickle=True" in str(raised.value)
    assert heap.root == {}


def test_the_ways_work(heap):
    heap.root["texts"] = numpy.array(["x", "yz"]).tolist()
    heap.root["times"] = numpy.array(["2026-01-01"], "M8[s]").view("i8")
    heap.root["other"] = numpy.zeros(2, ">f8").astype(numpy.zeros(2, ">f8").dtype.newbyteorder("="))

    @taiyen.record
    class Pair:
        a: taiyen.i4
        b: float

    heap.records("pairs", Pair).extend(numpy.zeros(2, taiyen.dtype(Pair)))
    assert len(heap.root["pairs"]) == 2


def test_texts_of_indices(heap):
    heap.root.update(l=[1], d=__import__("collections").deque([1]))
    for name, built_in, taken in (("l", "list", "integers or slices"), ("d", "deque", "integers")):
        it = heap.root[name]
        for use in (lambda: it["a"], lambda: it.__setitem__("a", 1), lambda: it.__delitem__(None)):
            with pytest.raises(TypeError, match=f"^{built_in} indices must be {taken}, not (str|NoneType)"):
                use()
        for use in (it.index, it.remove):
            with pytest.raises(ValueError, match=f"7 is not in {built_in}"):
                use(7)
        with pytest.raises(IndexError):
            it[5]


class Hinted:
    """Says that it has more than there is memory for."""

    def __init__(self, hint):
        self.hint = hint
        self.left = iter(range(3))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.left)

    def __length_hint__(self):
        return self.hint


@pytest.mark.parametrize("hint", [sys.maxsize, 2**40, 0])
def test_length_hints_are_not_believed(heap, hint):
    heap.root.update(l=[], d=__import__("collections").deque())
    for use in (lambda it: it.extend(Hinted(hint)), lambda it: it.__iadd__(Hinted(hint))):
        use(heap.root["l"])
        use(heap.root["d"])
    heap.root["l"][:] = itertools.chain(heap.root["l"][:], Hinted(hint))
    heap.root["l"][3:3] = Hinted(hint)
    heap.root["d"].extendleft(Hinted(hint))
    assert heap.root["l"] == [0, 1, 2] * 4 and list(heap.root["d"]) == [2, 1, 0] + [0, 1, 2] * 2
    with pytest.raises(TypeError):
        heap.root["l"].extend(5)


@pytest.mark.parametrize("kind", [taiyen.Dict, taiyen.List, taiyen.Set, taiyen.Deque])
def test_types_have_parameters(kind):
    parameters = (str, int) if kind is taiyen.Dict else (str,)
    alias = kind[parameters if len(parameters) > 1 else parameters[0]]
    assert typing.get_origin(alias) is kind and typing.get_args(alias) == parameters


def test_pickled_values_are_copies(path):
    """As the page says: what is pickled has to be stored again, while nested dicts and lists are the heap's."""
    import collections

    with taiyen.open(path, pickle=True) as heap:
        heap.root["od"] = collections.OrderedDict(a=1)
        heap.root["od"]["b"] = 2
        assert heap.root["od"] == {"a": 1}
        changed = heap.root["od"]
        changed["b"] = 2
        heap.root["od"] = changed
        assert heap.root["od"] == {"a": 1, "b": 2}
