"""Goal: arrays are the heap's memory, without a copy, and nobody is left with a view of memory that went. Method: numpy,
memoryview and DLPack over arrays of each type and kind of heap."""

import array
import contextlib
import copy
import pickle
import threading

import pytest
import taiyen

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize("dtype", "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split())
def test_types(heap, dtype):
    made = heap.array("a", (3, 4), numpy.dtype(dtype) if dtype != "f4" else "float32")
    assert made.dtype == numpy.dtype(dtype) and made.shape == (3, 4) and not made.any() and made.flags.writeable
    if heap.kind == "transactional":
        with heap.transaction():
            made[1, 2] = 1
    else:
        made[1, 2] = 1
    assert heap.root["a"].numpy()[1, 2] == 1 and numpy.asarray(heap.root["a"]).ctypes.data == made.ctypes.data
    assert made.ctypes.data % 64 == 0
    heap.root["copied"] = numpy.zeros(2, dtype)
    for get in (lambda: made, lambda: heap.root["copied"].numpy(), lambda: taiyen.plain(heap.root["a"]),
                lambda: heap.root.pop("copied")):  # fmt: skip
        assert get().dtype.char == numpy.dtype(dtype).char  # int64's is another one than that of C's long long


@pytest.mark.parametrize("dtype", [numpy.dtype(">f8"), ">f8", numpy.dtype(">i4")])
def test_bytes_in_another_order_are_refused(heap, dtype):
    with pytest.raises(TypeError, match="byte order"):
        heap.array("a", 3, dtype)
    assert heap.root == {}


def test_is_there_again(path):
    with taiyen.open(path) as heap:
        grid = heap.array("grid", (1000, 50), "f4")
        grid[:] = numpy.arange(50)
        with pytest.raises(BufferError) as raised:
            heap.close()
        assert isinstance(raised.value, taiyen.LiveViewsError)
        part = grid[5:7]
        del grid
        with pytest.raises(BufferError):
            heap.close()
        with pytest.raises(BufferError):
            del heap.root["grid"]
        with pytest.raises(BufferError):
            heap.root.clear()
        with pytest.raises(BufferError):
            heap.root["grid"] = 1
        del part
    with taiyen.open(path, readonly=True) as heap:
        grid = heap.array("grid")
        assert not grid.flags.writeable and grid.sum() == 1000 * sum(range(50))
        with pytest.raises(ValueError):
            grid[0] = 1
        with pytest.raises(KeyError):
            heap.array("other")
        del grid


def test_what_has_more_than_numbers(heap, tmp_path):
    """A masked array lost its mask, without a word."""
    masked = numpy.ma.array([1, 2], mask=[0, 1])
    others = [numpy.array(["2020-01-01"], "M8[D]"), numpy.array(["a"]), numpy.array([None]), numpy.array([(1,)], [("a", "i4")])]
    for one in (masked, numpy.arange(2).view(type("Unit", (numpy.ndarray,), {})), *others):
        with pytest.raises(TypeError):
            heap.root["a"] = [one]
    with taiyen.open(tmp_path / "pickles.ty", pickle=True) as pickles:
        pickles.root["a"] = [masked, *others, numpy.float64(2)]
        assert pickles.root["a"][0].tolist() == [1, None]
        assert all(numpy.array_equal(one, other) for one, other in zip(others, list(pickles.root["a"])[1:]))
    heap.root["a"] = numpy.float64(2), numpy.bool_(True)
    assert [type(one) for one in heap.root["a"]] == [numpy.float64, numpy.bool_] and heap.root["a"] == (2, True)
    with pytest.raises(TypeError):
        heap.root[numpy.int64(5)] = 1


@pytest.mark.parametrize("dtype", ["f2", "c8", "c16", "f4"])
def test_lists_and_equality(heap, dtype):
    """What a memoryview does not know was unequal to itself, and no list."""
    for shape in ((), (3,), (2, 3), (2, 0, 2)):
        made = numpy.arange(numpy.prod(shape, dtype=int), dtype=dtype).reshape(shape) * (1 + 2j if "c" in dtype else 0.5)
        heap.root["a"], heap.root["b"] = made.astype(dtype), made.astype(dtype)
        a, b = heap.root["a"], heap.root["b"]
        assert a == a and a == b and not a != b and a.tolist() == made.astype(dtype).tolist()
        heap.root["c"] = made.astype(dtype) + 1
        assert (a == heap.root["c"]) == (0 in shape) and a != heap.root["c"] or 0 in shape
    heap.root["n"], heap.root["i"] = numpy.array([numpy.nan], dtype), numpy.array([1])
    assert heap.root["n"] != heap.root["n"] and heap.root["n"] != heap.root["i"] and heap.root["n"] != [1]
    heap.root["one"] = numpy.array([1], dtype)
    assert heap.root["one"] == heap.root["i"]


def test_nothing_is_replaced(heap):
    heap.root["n"] = None
    with pytest.raises(TypeError, match="NoneType"):
        heap.array("n", 3)
    assert heap.root == {"n": None}


def test_what_another_thread_has_stored_meanwhile_stays(path):
    """The name was looked for, then another thread's transaction was waited for, and what that had stored was replaced."""
    with taiyen.open(path, kind="transactional") as heap:
        begun, looked = threading.Event(), threading.Event()

        def store():
            with heap.transaction():
                begun.set()
                looked.wait(20)
                while not heap._busy:
                    pass
                heap.root["n"] = [1]

        thread = threading.Thread(target=store)
        thread.start()
        begun.wait(20)
        looked.set()
        with pytest.raises(TypeError, match="List"):
            heap.array("n", 3)
        thread.join()
        assert heap.root == {"n": [1]}


def test_copied_in(heap):
    for source in (numpy.arange(24, dtype="i4").reshape(2, 3, 4), numpy.arange(20.0)[::3], array.array("d", [1, 2]),
                   bytearray(b"abc"), memoryview(b"xyz"), numpy.array(5.5), numpy.zeros((0, 3))):  # fmt: skip
        heap.root["a"] = {"in": [source]}
        made = heap.root["a"]["in"][0]
        assert isinstance(made, taiyen.Array) and numpy.array_equal(numpy.asarray(made), numpy.asarray(source))
        assert numpy.asarray(made).shape == numpy.asarray(source).shape
        assert numpy.array_equal(taiyen.plain(heap.root["a"])["in"][0], numpy.asarray(source))
        del made
    with pytest.raises(TypeError, match="byte order"):
        heap.root["b"] = numpy.zeros(3, ">f4")
    with pytest.raises(TypeError):
        heap.root["b"] = numpy.array(["text"])
    with pytest.raises(TypeError):
        heap.array("b", 5, "U7")
    assert heap.array("a2", 5).tolist() == [0.0] * 5
    with pytest.raises(ValueError):
        heap.array("a2", 6)


@pytest.mark.parametrize("dtype", ["?", "i8", "f2", "c16"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_a_copy_is_no_view(heap, dtype, shape):
    """PY2. What a transaction or step has made has no views, and was refused to those who copy it."""
    made = numpy.ones(shape, dtype)
    scope = heap.transaction if heap.kind == "transactional" else heap.step
    with scope():
        heap.root["d"] = {"a": made}
        for copied in (taiyen.plain(heap.root)["d"]["a"], taiyen.plain(heap.root["d"]["a"]), copy.deepcopy(heap.root["d"])["a"],
                       pickle.loads(pickle.dumps(heap.root["d"]["a"]))):  # fmt: skip
            assert copied.dtype.char == made.dtype.char and copied.shape == shape and (copied == made).all()
            assert copied.flags.writeable and copied.flags.owndata
        assert heap.root["d"]["a"].tolist() == made.tolist()
        with pytest.raises(BufferError, match="way"):
            heap.root["d"]["a"].numpy()
        assert heap.root.pop("d")["a"].tolist() == made.tolist()
        assert heap.root == {}


def test_growth_never_moves_a_view(heap):
    view = heap.array("a", 1000, "i8")
    place = view.ctypes.data
    for number in range(300):
        heap.root[number] = "x" * 1000
    assert heap.root["a"].numpy().ctypes.data == place and not view.any()


def test_dlpack(heap):
    heap.root["a"] = numpy.arange(6, dtype="f4").reshape(2, 3)
    there = numpy.from_dlpack(heap.root["a"])
    assert there.shape == (2, 3) and there.ctypes.data == heap.root["a"].numpy().ctypes.data
    with pytest.raises(BufferError):
        heap.close()
    del there


def test_transactions(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        view = heap.array("a", 10_000, "i8")
        with heap.transaction():
            view[:] = 1
            heap.root["sum"] = 10_000
        with pytest.raises(KeyError), heap.transaction():
            view[5000:] = 7
            heap.root["sum"] = 0
            raise KeyError
        assert view.sum() == heap.root["sum"] == 10_000
        with heap.transaction():
            heap.root["new"] = numpy.ones(5)
            with pytest.raises(BufferError):
                heap.root["new"].numpy()
        assert heap.root["new"].numpy().sum() == 5
        del view
        heap.discard()
    with taiyen.open(path) as heap:
        assert heap.array("a").sum() == 10_000


@taiyen.record
class Pixel:
    x: int
    y: float


@pytest.mark.parametrize("outcome", ["commit", "roll back", "kill"])
@pytest.mark.parametrize("look", [lambda root: root["a"].numpy(), lambda root: memoryview(root["a"]),
                                  lambda root: root["deep"]["b"].numpy(), lambda root: root["r"].numpy()["y"]])  # fmt: skip
def test_the_first_look_is_in_a_transaction_that_has_stored(path, look, outcome):
    """PY23. It was a BusyError, whose remedy was C's alone."""
    with taiyen.open(path, kind="transactional") as heap:
        heap.root.update(a=numpy.zeros(5), deep={"b": numpy.zeros(5)}, r=[Pixel(number, 0.0) for number in range(5)], n=0)
    expected = [0.0] * 5
    heap = taiyen.open(path)
    with contextlib.suppress(KeyError), heap.transaction():
        heap.root["n"] += 1
        for place in 1, 3:
            look(heap.root)[place] = 7 + place
        assert look(heap.root)[1] == 8
        heap.root["n"] += 1
        if outcome == "roll back":
            raise KeyError
    if outcome != "roll back":
        expected[1], expected[3] = 8.0, 10.0
    assert list(look(heap.root)) == expected and heap.root["n"] == (outcome != "roll back") * 2
    with contextlib.suppress(KeyError), heap.transaction():  # one after it
        look(heap.root)[0] = 5
        if outcome == "roll back":
            raise KeyError
    expected[0] = 5.0 * (outcome != "roll back")
    assert list(look(heap.root)) == expected
    heap.discard() if outcome == "kill" else heap.close()  # the log alone has it
    with taiyen.open(path) as heap:
        assert list(look(heap.root)) == expected and heap.verify() == []


def test_a_thread_looks_within_anothers_transaction(path):
    """PY23. From then on transactions find stores by themselves, but not the one that was under way."""
    with taiyen.open(path, kind="transactional") as heap:
        heap.root["a"], heap.root["n"] = numpy.zeros(5), 0
    with taiyen.open(path) as heap:
        with pytest.raises(KeyError), heap.transaction():
            heap.root["n"] += 1
            thread = threading.Thread(target=lambda: memoryview(heap.root["a"]).release())
            thread.start()
            thread.join()
            heap.root["a"][1] = 7
            raise KeyError
        assert heap.root["a"].tolist() == [0.0] * 5 and heap.root["n"] == 0


def test_undo(path):
    with taiyen.open(path) as heap:
        heap.array("a", 100, "i8")
        with heap.step("fill"):
            heap.root["a"].record()
            heap.root["a"].numpy()[:] = 5
        view = heap.root["a"].numpy()
        with pytest.raises(BufferError):
            heap.undo()
        del view
        heap.undo()
        assert heap.array("a").sum() == 0
        heap.redo()
        assert heap.array("a").sum() == 500


def test_shared_array_stays_while_it_is_stored(heap):
    heap.root["a"] = numpy.arange(5)
    heap.root["b"] = {"same": heap.root["a"]}
    view = heap.root["a"].numpy()
    del heap.root["a"]
    assert view.sum() == 10
    with pytest.raises(BufferError):
        del heap.root["b"]
    del view
    del heap.root["b"]
