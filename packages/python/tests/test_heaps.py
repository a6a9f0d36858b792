"""Goal: heaps keep what they promise: what was committed is there, what was not is gone, and whatever goes wrong is an
exception with a remedy. Method: each way to open, end and misuse a heap."""

import asyncio
import gc
import os
import pathlib
import re
import subprocess
import sys
import threading
from collections import deque

import pytest
import taiyen


def test_is_there_again(path):
    with taiyen.open(path) as heap:
        heap.root["cities"] = {"Lisbon": {"tags": ["port"]}}
        heap.root["cities"]["Lisbon"]["tags"].append("capital")
        assert heap.report["created"] and heap.kind == "snapshot" and "heap.ty" in repr(heap)
    with taiyen.open(path, create=False) as heap:
        assert heap.root == {"cities": {"Lisbon": {"tags": ["port", "capital"]}}}
        assert not heap.report["created"]


@pytest.mark.parametrize("kind", ["snapshot", "transactional", "archive"])
def test_kinds(path, kind):
    with taiyen.open(path, kind=kind, log_bytes=1 << 20) as heap:
        heap.root["x"] = [1]
        assert heap.kind == kind
        heap.snapshot()
    assert taiyen.info(path)["kind"] == kind and taiyen.info(path)["closed"]
    with taiyen.open(path) as heap:
        assert heap.kind == kind and heap.root == {"x": [1]}


def test_discard(path):
    heap = taiyen.open(path)
    heap.root["kept"] = 1
    heap.snapshot()
    heap.root["lost"] = 1
    heap.discard()
    with taiyen.open(path) as heap:
        assert heap.root == {"kept": 1}


def test_open_refusals(path, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        taiyen.open(path, create=False)
    assert isinstance(raised.value, taiyen.NotFoundError) and raised.value.status == "TY_E_NOT_FOUND"
    assert str(path) in str(raised.value) and raised.value.path == str(path)
    with taiyen.open(path):
        with pytest.raises(taiyen.BusyError) as raised:
            taiyen.open(path)
        assert "close it" in str(raised.value)
    with pytest.raises(FileExistsError):
        taiyen.open(path, create=True)
    (tmp_path / "foreign").write_bytes(b"something else" * 1000)
    with pytest.raises(taiyen.FormatError):
        taiyen.open(tmp_path / "foreign")
    for wrong in ({"kind": "shelf"}, {"kind": "volatile"}, {"readonly": 7}):
        with pytest.raises(ValueError):
            taiyen.open(path, **wrong)
    with pytest.raises(TypeError):
        taiyen.open(path, colour="red")


WRONG = [
    ({"limit": -1}, ValueError, "limit"), ({"limit": 1.5}, TypeError, "limit"), ({"memory": "x"}, TypeError, "memory"),
    ({"undo_bytes": 2**64}, ValueError, "undo_bytes"), ({"log_bytes": -5}, ValueError, "log_bytes"),
    ({"snapshot_interval_ms": -1}, ValueError, "snapshot_interval_ms"),
    ({"snapshot_interval_ms": 2**32}, ValueError, "snapshot_interval_ms"),
    ({"snapshot_dirty_bytes": None, "tracking": "x"}, ValueError, "tracking"), ({"tracking": 7}, ValueError, "tracking"),
    ({"create": "x"}, ValueError, "create"), ({"kind": 5}, ValueError, "kind"), ({"journal": 5}, TypeError, "journal: "),
    ({"log": "nul\0"}, ValueError, "log: embedded null byte"), ({"readonly": "x"}, ValueError, "readonly"),
]  # fmt: skip


@pytest.mark.parametrize("options, error, expected", WRONG, ids=lambda one: str(one)[:30])
def test_options_are_checked(path, options, error, expected):
    with pytest.raises(error, match=expected):
        taiyen.open(path, **options)
    assert not path.exists()


def test_other_refusals(path, tmp_path):
    with pytest.raises(ValueError, match="limit"):
        taiyen.volatile(limit=-1)
    for use in (taiyen.open, taiyen.info):
        with pytest.raises(ValueError, match="null byte"):
            use(str(path) + "\0evil")
        with pytest.raises(TypeError):
            use(5)
    assert os.listdir(tmp_path) == []
    with taiyen.open(path, journal=tmp_path / "j", tracking="content") as heap:
        with pytest.raises(TypeError, match="label"):
            heap.step(5)
        with heap.step("\ud800"):
            heap.root["x"] = 1
        assert heap.history()[0].label == "?"
        with pytest.raises(ValueError, match="null"):
            heap.step("a\0b")
        with heap.step("名" * 16):
            heap.root["x"] = 2
        assert heap.history()[0].label == "名" * 15
        if hasattr(taiyen._core, "unpack"):
            with pytest.raises(ValueError, match="codec is one of 'lz4', 'zstd', 'none', not 'gzip'"):
                heap.pack(tmp_path / "packed", codec="gzip")
            heap.pack(tmp_path / "packed")
            with pytest.raises(ValueError, match="kind"):
                taiyen.unpack(tmp_path / "packed", tmp_path / "again", kind="nonsense")
        assert (tmp_path / "j").exists()
        with pytest.raises(ValueError, match="snapshot_interval_ms is for transactional heaps"):
            taiyen.open(tmp_path / "other", snapshot_interval_ms=50)
    for kind in ("snapshot", "archive"):
        with pytest.raises(ValueError, match="snapshot_dirty_bytes is for transactional heaps.* call snapshot()"):
            taiyen.open(tmp_path / "other", kind=kind, snapshot_dirty_bytes=1 << 20)
    with taiyen.open(tmp_path / "third", kind="transactional", log_bytes=1 << 20, snapshot_interval_ms=50) as heap:
        heap.root["x"] = 1


def test_names_that_are_no_text(tmp_path):
    name = os.path.join(os.fsencode(tmp_path), b"n\xff\xe9.ty")
    for given in (name, os.fsdecode(name)):
        with taiyen.open(given) as heap:
            heap.root["x"] = 1
            assert heap.path == os.fsdecode(name) and repr(heap) and heap.report["text"]
        assert os.path.exists(name) and taiyen.info(given)["closed"]
    with pytest.raises(taiyen.ExistsError) as raised:
        taiyen.open(name, create=True)
    assert os.fsencode(raised.value.path) == name and str(raised.value)
    deep = os.path.join(os.fsencode(tmp_path), *["é".encode() * 100] * 4, b"x.ty")  # longer than an error holds
    with pytest.raises(taiyen.NotFoundError) as raised:
        taiyen.open(deep, create=False)
    assert raised.value.path.endswith("éx.ty".replace("éx", "é/x")) and str(raised.value)


def test_a_refused_undo_changes_nothing():
    with taiyen.volatile() as heap:
        for refused in (heap.undo, heap.redo):
            with pytest.raises(taiyen.NotFoundError, match="heap.step"):
                refused()
        heap.root["a"] = 1
        assert heap.history() == []


def test_a_history_that_is_full(path):
    """No disk is full, and the remedy is Python's."""
    big = [str(i) * 20 for i in range(3000)]
    with taiyen.open(path, undo_bytes=1 << 15) as heap:
        with heap.step("first"):
            heap.root["a"] = 1
        for change in (lambda: heap.root.update(big=big), lambda: heap.root.update(big=["x" * 100] * 3, a={}, **{str(i): [i] for i in range(3000)})):
            with pytest.raises(taiyen.HistoryFullError, match=r"Heap.clear_history\(\)") as raised:
                change()
            assert isinstance(raised.value, MemoryError) and "disk" not in str(raised.value) and "ty_" not in str(raised.value)
            assert heap.root == {"a": 1}
        with pytest.raises(taiyen.BusyError), heap.step("x"):
            heap.clear_history()
        with heap.step("kept"):  # those of before gave it room
            heap.root["a"] = 1
    with pytest.warns(UserWarning, match="clear_history"), taiyen.open(path, undo_bytes=1 << 24) as heap:  # it has a step
        with pytest.raises(taiyen.HistoryFullError):
            heap.root["big"] = big
        heap.clear_history()
        heap.root["big"] = big
        assert heap.history() == []
        with heap.step("again"):
            heap.root["big"] = big[::-1]
        heap.undo()
        assert heap.root["big"] == big and heap.verify() == []
        heap.clear_history()
    with taiyen.open(path, undo_bytes=1 << 15) as heap:
        with heap.step("small"):
            pass
        with pytest.raises(taiyen.HistoryFullError):
            heap.root["more"] = big


def test_what_goes_is_more_than_the_history_holds(path):
    """PY32. What was freed did not fit, which was reported when the change was made; then each change was refused."""
    with taiyen.open(path, undo_bytes=1 << 15) as heap:
        root = heap.root
        root.update(big=[str(number) * 20 for number in range(3000)], small=1)
        with heap.step("first"):
            root["d"] = {}
        before = taiyen.plain(root)

        def step():
            with heap.step("as a whole"):
                root["small"] = 2
                root.pop("big")

        def step_that_hears_nothing():
            with heap.step(), pytest.raises(taiyen.HistoryFullError):
                root["small"] = 2
                root["big"].clear()

        for change in (lambda: root.pop("big"), lambda: root.update(big=1), lambda: root.__delitem__("big"), root.clear,
                       lambda: root.__setitem__("big", 1), step, step_that_hears_nothing):  # fmt: skip
            with pytest.raises(taiyen.HistoryFullError, match=r"Heap.clear_history\(\)"):
                change()
            assert root == before and heap.verify() == []
            root["small"] = 1
            with heap.step():
                root["d"][1] = 1
            heap.undo()

        held = root["big"]
        del root["big"], held  # to be freed by the next change
        for number in range(3):
            root["small"] = number
            with heap.step():
                root["d"][1] = number
        heap.undo()
        assert root == {"small": 2, "d": {1: 1}} and heap.collect() == 0
        blocks = heap.stats()["live_blocks"]
        heap.clear_history()
        root["small"] = 1
        assert heap.stats()["live_blocks"] < blocks - 3000 and heap.verify() == []


def test_texts_name_what_python_has():
    """Each name of C that a text of the library has is Python's, or said to be C's."""
    from taiyen._errors import _IN_PYTHON, _in_python

    for phrase, instead in _IN_PYTHON.items():
        assert _in_python(f"it is so; {phrase}").endswith(f"; {instead}") and "ty_" not in instead and "TY_" not in instead
    assert _in_python("cannot open: /tmp/ty_open/x ty_open.ty; ty_promote(), ty_open") == \
        "cannot open: /tmp/ty_open/x ty_open.ty; C's ty_promote(), taiyen.open"
    assert _in_python(_in_python("call ty_promote")) == "call C's ty_promote"
    tree = pathlib.Path(__file__).parents[3]
    sources = [*tree.glob("src/**/*.[ch]pp"), *tree.glob("packages/pack/src/**/*.[ch]pp")]
    texts = "\n".join(re.sub(r'"\s*"', "", file.read_text()) for file in sources)
    for phrase in _IN_PYTHON:
        assert phrase in texts, phrase


def test_reading_only(path):
    with taiyen.open(path) as heap:
        heap.root.update({"list": [1], "set": {1}, ("key", "of a tuple"): 1})
        heap.snapshot()
        with pytest.raises(taiyen.BusyError, match="this process has it open"):
            taiyen.open(path, readonly="copy")
        program = "import sys, taiyen; print(taiyen.open(sys.argv[1], readonly='copy').root)"
        result = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == repr(heap.root)
    with taiyen.open(path, readonly=True) as heap:
        assert heap.root[("key", "of a tuple")] == 1 and (1, 2) not in heap.root
        for change in (lambda: heap.root.update(a=1), lambda: heap.root["list"].append(1), heap.root.clear,
                       lambda: heap.root["set"].add(2), lambda: heap.array("a", 5)):  # fmt: skip
            with pytest.raises(PermissionError) as raised:
                change()
            assert isinstance(raised.value, taiyen.DeniedError)


def test_closed(path):
    heap = taiyen.open(path)
    heap.root["l"] = [1]
    root, inner, iterator = heap.root, heap.root["l"], iter(heap.root)
    assert inner.is_alive and inner.heap is heap
    heap.close()
    heap.close()
    assert heap.closed and not inner.is_alive and "closed" in repr(heap)
    for use in (lambda: heap.root, lambda: root["l"], lambda: len(inner), lambda: next(iterator), heap.snapshot,
                lambda: inner.append(1), heap.stats, heap.map, lambda: heap.step("x").__enter__(), heap.undo):  # fmt: skip
        with pytest.raises(taiyen.ClosedError):
            use()


def test_transactions(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        root = heap.root
        root["visits"] = 1
        root["old"] = old = [1]
        old = root["old"]
        with heap.transaction():
            root["visits"] += 1
        with pytest.raises(ZeroDivisionError), heap.transaction():
            root["visits"] = 99
            root["new"] = {"a": 1}
            new = root["new"]
            old.append(2)
            del root["old"]
            assert old == [1, 2] and old.is_alive  # nothing stores it, but for its proxy
            1 / 0
        assert root == {"visits": 2, "old": [1]} and old == [1] and root["old"] is old
        with pytest.raises(ReferenceError, match="deleted"):
            new["a"]
        root["again"] = {"b": 1}  # may lie where `new` did
        with pytest.raises(taiyen.DeletedError):
            new["a"]
        with heap.transaction():
            with pytest.raises(taiyen.BusyError, match="nest"):
                heap.transaction().__enter__()
            with pytest.raises(taiyen.BusyError):
                heap.close()
        with heap.transaction(wait=False) as last:
            root["visits"] = 3
        assert last.lsn and last.is_durable(wait=True) and last.is_durable()
        asyncio.run(heap.durable())
        assert heap.stats()["transactions"] >= 4
        heap.discard()
    with taiyen.open(path) as heap:
        assert heap.root["visits"] == 3 and "new" not in heap.root


def test_failed_change_is_whole(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["x"] = 1
        with pytest.raises(TypeError):
            heap.root.update({"a": 1, "b": object()})
        assert heap.root == {"x": 1}


def test_a_change_for_which_room_ends_is_taken_back(path):
    with taiyen.open(path, kind="transactional", limit=64 << 20) as heap:
        heap.root["d"] = {}
        heap.root["spare"] = "x" * 200_000
        size = 8 << 20
        while size >= 16_384:
            try:
                heap.root[f"room of {size} {len(heap.root)}"] = "x" * size
            except taiyen.HeapFullError:
                size //= 2
        del heap.root["spare"]  # room for the first ones
        with pytest.raises(taiyen.HeapFullError):
            heap.root["d"].update({number: number for number in range(50_000)})
        assert heap.root["d"] == {} and heap.verify() == []
        heap.discard()


BIG = range(10_000)
CHANGES_OF_MANY = {
    "update": lambda root: root["d"].update({number: number for number in BIG}),
    "texts": lambda root: root["d"].update({f"a long key {number}": "x" for number in BIG}),
    "|=": lambda root: root["s"].__ior__(set(BIG)),
    "^=": lambda root: root["s"].__ixor__({f"a long key {number}" for number in BIG}),
    "^": lambda root: root["s"].symmetric_difference_update(BIG),
    "extend": lambda root: root["q"].extend(BIG),
    "extendleft": lambda root: root["q"].extendleft([str(number) * 9 for number in BIG]),
    "shared": lambda root: root["q"].extend([root["d"], *[[number] for number in BIG]]),
    "*=": lambda root: root["t"].__imul__(5_000),
    "list": lambda root: root["l"].__imul__(5_000),
}


@pytest.mark.parametrize("kind", ["volatile", "snapshot", "transactional"])
def test_a_change_for_which_room_ends_changes_nothing(path, kind):
    """Also where no transaction or step of its own takes it back."""
    heap = taiyen.volatile(limit=64 << 20) if kind == "volatile" else taiyen.open(path, kind=kind, limit=64 << 20)
    before = {"d": {1: [1], "a": 2}, "s": {1, "a"}, "q": deque([[1], 2, 3]), "t": deque([[1], 2, 3]), "l": [[1], 2, 3]}
    heap.root.update(before)
    size = 8 << 20
    while size >= 4_096:
        try:
            heap.root[f"room of {size} {len(heap.root)}"] = "x" * size
        except taiyen.HeapFullError:
            size //= 2

    def refuse_all():
        for name, change in CHANGES_OF_MANY.items():
            with pytest.raises(taiyen.HeapFullError):
                change(heap.root)
            assert {name: taiyen.plain(heap.root[name]) for name in before} == before, name

    if kind == "transactional":
        with heap.transaction():
            refuse_all()
    refuse_all()
    assert heap.verify() == []
    for name in list(heap.root):
        if name not in before:
            del heap.root[name]
    for change in CHANGES_OF_MANY.values():
        change(heap.root)
    assert len(heap.root["d"]) > len(BIG) and heap.verify() == []
    heap.discard()


def test_keys_that_come_twice_in_a_change(heap):
    """One that was made in vain was freed twice."""
    heap.root.update(s=set(), d={})
    keys = [("a", "tuple"), "a text that is longer", b"x" * 200]
    heap.root["s"].update([*keys, *map(eval, map(repr, keys)), *keys])
    heap.root["d"].update({key: key for key in keys})
    assert heap.verify() == [] and heap.root["s"] == set(keys) and list(heap.root["d"]) == keys


def test_no_transactions(path):
    with taiyen.open(path) as heap, pytest.raises(taiyen.ArgumentError, match="transactional"):
        heap.transaction().__enter__()


def test_threads(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["sum"] = 0
        heap.root["rows"] = []
        errors = []

        def work():
            try:
                for number in range(50):
                    with heap.transaction(wait=number % 10 == 0):
                        heap.root["sum"] += 1
                        heap.root["rows"].append({"n": number})
                    heap.root["sum"], list(heap.root["rows"])[:2]
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors and heap.root["sum"] == len(heap.root["rows"]) == 300


def test_no_close_while_a_thread_waits(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:

        def wait():
            with heap.transaction():
                heap.root["done"] = True

        thread = threading.Thread(target=wait)
        with heap.transaction():
            thread.start()
            while not heap._busy:
                os.sched_yield()
            for end in (heap.close, heap.discard):
                with pytest.raises(taiyen.BusyError):
                    end()
        thread.join()
        assert heap.root == {"done": True}


def test_threads_and_snapshots(path):
    with taiyen.open(path) as heap:
        end = threading.Event()
        errors = []

        def work(name):
            try:
                number = 0
                while not end.is_set() or number < 10:
                    heap.root[name] = {"number": number, "text": "of this number " * 3}
                    number += 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            heap.snapshot()
        end.set()
        for thread in threads:
            thread.join()
        assert not errors and heap.verify() == []


def test_undo(path):
    with taiyen.open(path) as heap:
        root = heap.root
        root["walls"] = {"north": [0, 0]}
        with heap.step("Move wall"):
            root["walls"]["north"][0] = 5
            root["walls"]["south"] = [1, 1]
        south, north = root["walls"]["south"], root["walls"]["north"]
        with heap.step("Delete"):
            del root["walls"]["north"]
        assert north == [5, 0]  # nothing stores it, but for its proxy
        assert [step.label for step in heap.history()] == ["Delete", "Move wall"]
        heap.undo()
        assert north == [5, 0] and root["walls"]["north"] is north
        heap.undo()
        assert root["walls"] == {"north": [0, 0]}
        with pytest.raises(taiyen.DeletedError):
            south[0]
        assert all(step.undone for step in heap.history())
        heap.redo()
        assert south == [1, 1] and north == [5, 0]
        with pytest.raises(ValueError), heap.step("Fails"):
            root["walls"].clear()
            raise ValueError
        assert south == [1, 1] and len(root["walls"]) == 2
        with heap.step("Other"), pytest.raises(taiyen.BusyError):
            heap.step("within").__enter__()
        heap.snapshot()
        heap.discard()
    for readonly in (True, "copy"):
        with taiyen.open(path, readonly=readonly) as heap:
            assert [step.label for step in heap.history()] == ["Delete", "Move wall"]
            for change in (heap.undo, heap.redo):
                with pytest.raises(taiyen.DeniedError):
                    change()
    with taiyen.open(path) as heap:  # changes between steps belong to the history, too
        heap.root["loose"] = 1
        assert [step.label for step in heap.history()] == ["", "Move wall"]
        heap.undo()
        heap.undo()
        assert heap.root == {"walls": {"north": [0, 0]}} and heap.verify() == []
        with pytest.raises(taiyen.NotFoundError):
            heap.undo()


def test_undone_objects_do_not_come_back_as_others():
    with taiyen.volatile() as heap:
        with heap.step("a"):
            heap.root["x"] = {"first": 1}
        gone = heap.root["x"]
        heap.undo()
        with heap.step("b"):
            heap.root["y"] = {"second": 2}
        heap.undo()
        heap.redo()
        with pytest.raises(taiyen.DeletedError):
            gone["first"]


def test_no_undo_of_transactional_heaps(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap, pytest.raises(taiyen.UnsupportedError):
        heap.step("x").__enter__()


def test_iteration_notices_changes(heap):
    heap.root.update({"d": {1: 1, 2: 2}, "s": {1, 2}, "l": [1, 2]})
    for it, change in ((heap.root["d"], lambda: heap.root["d"].update({3: 3})), (heap.root["s"], lambda: heap.root["s"].add(3))):
        with pytest.raises(RuntimeError, match="changed size"):
            for _ in it:
                change()
    for key in heap.root["d"]:
        heap.root["d"][key] = 7  # of a key that is there
    for item in heap.root["l"]:
        if len(heap.root["l"]) < 5:
            heap.root["l"].append(item)
    assert heap.root["l"] == [1, 2, 1, 2, 1]


def test_limit(path):
    with taiyen.open(path, limit=64 << 20) as heap:
        heap.root["kept"] = "yes"
        with pytest.raises(MemoryError) as raised:
            for number in range(10**6):
                heap.root[number] = "x" * 2_000_000
        assert isinstance(raised.value, taiyen.HeapFullError)
        assert heap.root["kept"] == "yes" and heap.verify() == []


def test_fork(path):
    with taiyen.open(path) as heap:
        heap.root["x"] = [1]
        inner = heap.root["x"]
        child = os.fork()
        if not child:
            reported = 0
            for use in (lambda: heap.root, lambda: inner[0], lambda: inner.append(2), heap.snapshot):
                try:
                    use()
                except taiyen.ForkedError:
                    reported += 1
            heap.discard()
            os._exit(reported)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        assert inner == [1]


@pytest.mark.parametrize("kind", ["transactional", "snapshot"])
def test_a_forked_child_leaves_a_block(path, kind):
    """With the exception that it has; without one it hears that nothing of the block is kept."""
    with taiyen.open(path, kind=kind) as heap:
        for fails, exits in ((True, 3), (False, 4)):
            try:
                with heap.transaction() if kind == "transactional" else heap.step("one"):
                    heap.root["x"] = fails
                    child = os.fork()
                    if not child and fails:
                        raise KeyError("the child's own")
            except KeyError:
                os._exit(3)
            except taiyen.ForkedError:
                os._exit(4)
            if not child:
                os._exit(5)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == exits
            assert heap.root["x"] is fails


def test_full_disk(path):
    """Goal: a disk that is full is an exception, and the heap goes on. Method: a limit for files, in a process."""
    program = """
import resource, signal, sys, taiyen
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
heap = taiyen.open(sys.argv[1], kind=sys.argv[2], log_bytes=1 << 20)
heap.root["kept"] = 1
heap.snapshot()
resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.RLIM_INFINITY))
try:
    for number in range(500):
        heap.root[number] = "x" * 100_000
        heap.snapshot()
    sys.exit("no error")
except (taiyen.DiskFullError, taiyen.HeapFullError) as error:
    assert isinstance(error, (OSError, MemoryError)) and error.remedy is not None, error
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
heap.root["after"] = 2
heap.close()
"""
    for kind in ("snapshot", "transactional"):
        name = f"{path}-{kind}"
        ended = subprocess.run([sys.executable, "-c", program, name, kind], capture_output=True, text=True)
        assert ended.returncode == 0, (kind, ended.returncode, ended.stderr)
        with taiyen.open(name) as heap:
            assert heap.root["kept"] == 1 and heap.root["after"] == 2 and heap.verify() == []


def test_faulthandler(path):
    """Goal: faulthandler and the library's handler of faults live together. Method: both orders; then a real fault."""
    program = """
import faulthandler, sys, taiyen
first, path = sys.argv[1] == "first", sys.argv[2]
if first:
    faulthandler.enable()
heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
view = memoryview(heap.root.setdefault("a", bytearray(100_000)))
with heap.transaction():
    view[5] += 1
if not first:
    faulthandler.enable()
for _ in range(3):
    with heap.transaction():
        view[5] += 1
        view[90_000] = 7
assert view[5] == 4
view.release()
heap.close()
if "fault" in sys.argv:
    faulthandler._sigsegv()
"""
    for order in ("first", "after"):
        name = f"{path}-{order}"
        ended = subprocess.run([sys.executable, "-c", program, order, name], capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, ""), order
        ended = subprocess.run([sys.executable, "-c", program, order, name + "2", "fault"], capture_output=True, text=True)
        assert ended.returncode == -11 and "Segmentation fault" in ended.stderr, order


FAULTS = {
    "enabled, then a store outside": "change(1); faulthandler.enable(); view[5] = 3",
    "disabled, then a store outside": "faulthandler.enable(); change(1); faulthandler.disable(); view[5] = 3",
    "enabled within": "change(1); heap.transaction().__enter__(); faulthandler.enable(); view[5] = 3",
    "disabled within": "faulthandler.enable(); change(1); heap.transaction().__enter__(); faulthandler.disable(); view[5] = 3",
    "both, again and again": "for i in range(4): change(i); faulthandler.enable(); view[5] = 3; faulthandler.disable(); view[9] = 3",
    "enabled twice": "change(1); faulthandler.enable(); change(2); faulthandler.enable(); view[5] = 3",
}


@pytest.mark.parametrize("what", FAULTS)
@pytest.mark.parametrize("last", ["enabled", "disabled"])
def test_faulthandler_at_any_time(path, what, last):
    """PY20. Goal: faulthandler can be enabled and disabled wherever one likes. It took the library's faults once, whenever
    that was between the library's begins. Then, a fault of the program's own still ends it."""
    program = f"""
import faulthandler, sys, taiyen
heap = taiyen.open(sys.argv[1], kind="transactional", log_bytes=1 << 20)
view = memoryview(heap.root.setdefault("a", bytearray(100_000)))
def change(value):
    with heap.transaction():
        view[5] = view[90_000] = value
{FAULTS[what]}
assert view[5] == 3
print("alive", flush=True)
faulthandler.{"enable" if last == "enabled" else "disable"}()
import ctypes
ctypes.string_at(16)
"""
    ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "alive\n", ended
    assert ended.returncode == -11 and ended.stderr.count("Fatal Python error") == (last == "enabled"), ended


ENDS = {
    "a view": "view = memoryview(heap.root['a']); view[0] = 7",
    "a thread with a view": '''
def hold():
    view = memoryview(heap.root['a'])
    with heap.transaction() if sys.argv[2] == "transactional" else memoryview(b""):
        view[0] = 7
    ready.set()
    time.sleep(100)
import threading, time
ready = threading.Event()
threading.Thread(target=hold, daemon=True).start()
ready.wait()''',
    "a thread in a step": '''
def hold():
    with heap.step("half") if sys.argv[2] != "transactional" else heap.transaction():
        heap.root["half"] = 1
        ready.set()
        time.sleep(100)
import threading, time
ready = threading.Event()
threading.Thread(target=hold, daemon=True).start()
ready.wait()''',
}


@pytest.mark.parametrize("kind", ["snapshot", "archive", "transactional"])
@pytest.mark.parametrize("what", ENDS)
def test_the_interpreters_end(path, kind, what):
    """PY21. What was changed is there after an end in order, also where a thread hindered the close: it was lost without a
    word."""
    code = ENDS[what] if kind != "transactional" else ENDS[what].replace("; view[0] = 7", "")
    program = f"import sys, taiyen; heap = taiyen.open(sys.argv[1], kind=sys.argv[2], log_bytes=1 << 20)\n" \
              f"heap.root.update(a=bytearray(10), x=1)\n{code}"  # fmt: skip
    ended = subprocess.run([sys.executable, "-c", program, path, kind], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    with taiyen.open(path) as heap:
        assert heap.root["x"] == 1 and "half" not in heap.root and heap.verify() == []
        assert heap.root["a"].tolist()[0] == (0 if "step" in what or "; view" in ENDS[what] and kind == "transactional" else 7)


def test_an_end_that_fails_is_reported(path):
    program = """
import resource, signal, sys, taiyen
heap = taiyen.open(sys.argv[1])
heap.root["kept"] = 1
heap.snapshot()
heap.root["a"] = bytearray(1 << 20)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
if sys.argv[2] == "view":
    view = memoryview(heap.root["a"])
if sys.argv[2] == "forgotten":
    del heap
"""
    for what in ("view", "nothing", "forgotten"):
        result = subprocess.run([sys.executable, "-c", program, path, what], capture_output=True, text=True, timeout=60)
        assert "heap.ty could not be closed" in result.stderr and "is lost" in result.stderr, result
        assert result.stderr.count("could not be closed") == 1, result
    assert taiyen.open(path).root["kept"] == 1


GENERATOR = """
import gc, sys, taiyen, threading
heap = taiyen.open(sys.argv[1], kind="transactional")
heap.root["before"] = 1
def rows():
    with heap.transaction():
        heap.root["half"] = 1
        yield
rows = rows()
next(rows)
def run_in_thread(work):
    threading.Thread(target=work).start()
    [thread.join() for thread in threading.enumerate() if thread is not threading.current_thread()]
"""
ENDS_OF_GENERATORS = {
    "closed": "run_in_thread(rows.close)",
    "goes on": "run_in_thread(lambda: next(rows))",
    "collected": "rows = [rows]; rows.append(rows); del rows; run_in_thread(gc.collect)",
}


@pytest.mark.parametrize("what", ENDS_OF_GENERATORS)
@pytest.mark.parametrize("then", ["heap.root.update(later=1)", "heap.close(); heap = taiyen.open(sys.argv[1]); heap.root.update(later=1)",
                                  "\nwith heap.transaction(): heap.root.update(later=1)"])  # fmt: skip
def test_a_transaction_that_another_thread_ends(path, what, then):
    """PY33. It stayed open without a word, and what its thread stored later was lost at the program's end."""
    result = subprocess.run([sys.executable, "-c", f"{GENERATOR}{ENDS_OF_GENERATORS[what]}\n{then}", path],
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert result.returncode == 0 and "BusyError: a transaction was left in another thread" in result.stderr, result
    with taiyen.open(path) as heap:
        assert heap.root == {"before": 1, "later": 1} and heap.verify() == []


def test_a_transaction_that_nobody_ends_is_reported(path):
    result = subprocess.run([sys.executable, "-c", f"{GENERATOR}heap.root['later'] = 1", path], capture_output=True, text=True, timeout=60)
    assert "heap.ty could not be closed, and what was changed in a transaction that nobody has ended is lost" in result.stderr
    with taiyen.open(path) as heap:
        assert heap.root == {"before": 1}


def test_a_child_that_ends_says_nothing(path):
    with taiyen.open(path) as heap:
        heap.root["x"] = 1
        program = "import os, sys, taiyen; heap = taiyen.open(sys.argv[1]); heap.root['y'] = 1; os.fork() or sys.exit(); os.wait()"
    result = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    with taiyen.open(path) as heap:
        assert heap.root == {"x": 1, "y": 1}


def test_forgotten_heap_is_closed(path):
    program = "import sys, taiyen; heap = taiyen.open(sys.argv[1]); heap.root['x'] = 1"
    subprocess.run([sys.executable, "-c", program, path], check=True)
    assert taiyen.info(path)["closed"]
    heap = taiyen.open(path)
    assert heap.root == {"x": 1}
    with pytest.warns(ResourceWarning):
        del heap
        gc.collect()


def test_pack(path, tmp_path):
    if not hasattr(taiyen._core, "unpack"):
        pytest.skip("built without pack")
    with taiyen.open(path) as heap:
        heap.root["x"] = {"deep": ["a text of some length", 2**70]}
        assert heap.pack(tmp_path / "packed") > 0
        with pytest.raises(FileExistsError):
            heap.pack(tmp_path / "packed")
    assert "unpacked" in taiyen.unpack(tmp_path / "packed", tmp_path / "again.ty")
    with taiyen.open(tmp_path / "again.ty") as heap:
        assert heap.root == {"x": {"deep": ["a text of some length", 2**70]}} and heap.verify() == []


def test_map(heap):
    heap.root["x"] = ["text of some length" * n for n in range(500)]
    assert heap.map().startswith("<svg") and heap._repr_svg_() == heap.map() and "live" in heap.map()


def test_program():
    ended = subprocess.run([sys.executable, "-m", "taiyen", "--version"], capture_output=True, text=True)
    assert ended.returncode == 0 or "make install" in ended.stderr


def test_no_leaks(heap):
    """Goal: neither references nor blocks are left behind. Method: the same work again and again."""
    def work():
        heap.root["d"] = {"a": [1, {"b": "a long enough text"}], "c": (1, [2]), ("k", 2): {3}}
        inner = heap.root["d"]["a"]
        inner.append(inner[1])
        heap.root["d"].pop("c")
        with pytest.raises(TypeError):
            heap.root["d"]["x"] = [[1], object()]
        list(heap.root["d"].items())
        del heap.root["d"]

    for _ in range(20):
        work()
    gc.collect()
    before = heap.stats()["live_blocks"], len(gc.get_objects()), sys.getrefcount(heap)
    for _ in range(200):
        work()
    gc.collect()
    after = heap.stats()["live_blocks"], len(gc.get_objects()), sys.getrefcount(heap)
    if "undo" not in os.environ.get("PYTEST_CURRENT_TEST", ""):  # a history holds blocks
        assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 50 and after[2] == before[2]
