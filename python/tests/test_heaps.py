"""Goal: heaps keep what they promise: what was committed is there, what was not is gone, and whatever goes wrong is an
exception with a remedy. Method: each way to open, end and misuse a heap."""

import asyncio
import gc
import os
import subprocess
import sys
import threading

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
    with pytest.raises(FileNotFoundError) as told:
        taiyen.open(path, create=False)
    assert isinstance(told.value, taiyen.NotFoundError) and told.value.status == "TY_E_NOT_FOUND"
    assert str(path) in str(told.value) and told.value.path == str(path)
    with taiyen.open(path):
        with pytest.raises(taiyen.BusyError) as told:
            taiyen.open(path)
        assert "close it" in str(told.value)
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


def test_reading_only(path):
    with taiyen.open(path) as heap:
        heap.root.update({"list": [1], "set": {1}, ("key", "of a tuple"): 1})
        heap.snapshot()
        with pytest.raises(taiyen.AddressError):  # where it is open in this process, there is no room for it
            taiyen.open(path, readonly="copy")
        program = "import sys, taiyen; print(taiyen.open(sys.argv[1], readonly='copy').root)"
        told = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == repr(heap.root)
    with taiyen.open(path, readonly=True) as heap:
        assert heap.root[("key", "of a tuple")] == 1 and (1, 2) not in heap.root
        for change in (lambda: heap.root.update(a=1), lambda: heap.root["list"].append(1), heap.root.clear,
                       lambda: heap.root["set"].add(2), lambda: heap.array("a", 5)):  # fmt: skip
            with pytest.raises(PermissionError) as told:
                change()
            assert isinstance(told.value, taiyen.DeniedError)


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
        assert last.sequence and last.stable(wait=True) and last.stable()
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
        size = 8 << 20
        while size >= 16_384:
            try:
                heap.root[f"room of {size} {len(heap.root)}"] = "x" * size
            except taiyen.HeapFullError:
                size //= 2
        with pytest.raises(taiyen.HeapFullError):
            heap.root["d"].update({number: number for number in range(50_000)})
        assert heap.root["d"] == {} and heap.verify() == []
        heap.discard()


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
        with pytest.raises(MemoryError) as told:
            for number in range(10**6):
                heap.root[number] = "x" * 2_000_000
        assert isinstance(told.value, taiyen.HeapFullError)
        assert heap.root["kept"] == "yes" and heap.verify() == []


def test_fork(path):
    with taiyen.open(path) as heap:
        heap.root["x"] = [1]
        inner = heap.root["x"]
        child = os.fork()
        if not child:
            told = 0
            for use in (lambda: heap.root, lambda: inner[0], lambda: inner.append(2), heap.snapshot, heap.close):
                try:
                    use()
                except taiyen.ForkedError:
                    told += 1
            heap.discard()
            os._exit(told)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        assert inner == [1]


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
