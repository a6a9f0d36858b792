"""Goal: an attempt is kept whole or taken back whole, whatever ends it. Method: an example of each way, on heaps of
each kind."""

import asyncio
import threading

import pytest
import taiyen
from test_interruptions import run
from test_marks import heap  # noqa: F401, a fixture


def test_attempts(heap):
    root = heap.root
    root["x"] = [1]
    x = root["x"]
    with heap.attempt() as tried:
        assert isinstance(tried, taiyen.Attempt) and [mark.name for mark in heap.marks()] == [tried.name]
        x.append(2)
    assert x == [1, 2] and heap.marks() == []
    with pytest.raises(KeyError, match="no"), heap.attempt():
        x.append(3)
        root["y"] = {"of": [5]}
        y = root["y"]
        raise KeyError("no")
    assert x == [1, 2] and root == {"x": [1, 2]} and heap.marks() == []
    with pytest.raises(taiyen.DeletedError):
        y["of"]
    with heap.attempt():
        x.append(3)
        with pytest.raises(ZeroDivisionError), heap.attempt():
            x.append(4)
            with heap.attempt():
                x.append(5)
            1 / 0
        assert x == [1, 2, 3]
        with heap.attempt():
            x.append(6)
    assert x == [1, 2, 3, 6] and heap.marks() == []


def test_attempts_that_end_within_their_block(heap):
    root = heap.root
    with heap.attempt() as tried:
        root["x"] = 1
        tried.go_back()
        assert root == {} and heap.marks() == []
        root["x"] = 2
        for call in (tried.go_back, tried.keep):
            with pytest.raises(taiyen.ArgumentError):
                call()
    assert root == {"x": 2}
    with pytest.raises(KeyError), heap.attempt() as tried:
        root["x"] = 3
        tried.keep()
        root["x"] = 4
        raise KeyError
    assert root == {"x": 4}  # what came after the end was no part of it
    with heap.attempt() as outer:
        root["x"] = 5
        with pytest.raises(KeyError), heap.attempt() as inner:
            root["x"] = 6
            outer.go_back()
            root["x"] = 7
            raise KeyError
        with pytest.raises(taiyen.ArgumentError):
            inner.keep()
    assert root == {"x": 7} and heap.marks() == []
    with pytest.raises(taiyen.BusyError), tried, tried:
        pass
    with pytest.raises(taiyen.ArgumentError):
        heap.attempt().go_back()
    with heap.attempt():
        root["x"] = 8
        heap.discard()
    with pytest.raises(ValueError), taiyen.volatile() as other, other.attempt():
        other.close()
        raise ValueError


def test_a_name_of_an_attempt_that_is_taken(heap):
    with heap.attempt() as tried:
        number = int(tried.name.split()[1])
    heap.mark(f"attempt {number + 1}")
    with pytest.raises(KeyError), heap.attempt():
        heap.root["x"] = 1
        raise KeyError
    assert heap.root == {} and len(heap.marks()) == 1


def test_an_attempt_that_cannot_go_back_stays_marked(heap):
    heap.root["x"] = 1
    with pytest.raises(taiyen.LiveViewsError) as raised, heap.attempt() as tried:
        heap.root["x"] = 2
        heap.root["a"] = memoryview(b"abc")
        view = memoryview(heap.root["a"])
        raise KeyError("the first one")
    assert isinstance(raised.value.__context__, KeyError) and heap.root["x"] == 2
    with heap.attempt():  # it is not within the other one
        assert len(heap.marks()) == 2
    view.release()
    tried.go_back()
    assert heap.root == {"x": 1} and heap.marks() == []


def test_steps_within_an_attempt(heap):
    if heap.kind == "transactional":
        pytest.skip("it has none")
    with pytest.raises(KeyError), heap.attempt():
        with heap.step("made within"):
            heap.root["x"] = [1]
        raise KeyError
    assert heap.root == {} and "made within" not in [step.label for step in heap.history()]
    with heap.step("after"):
        heap.root["x"] = [2]
    with pytest.raises(KeyError), heap.attempt():
        heap.undo()
        assert heap.root == {}
        heap.clear_history()
        heap.root["y"] = 1  # no step
        raise KeyError
    assert heap.root == {"x": [2]} and heap._undo_attached
    heap.root["y"] = 1  # a step, as the history is there again
    heap.undo()
    heap.undo()
    assert heap.root == {} and [step.label for step in heap.history()] == ["", "after"]


def test_transactions_within_an_attempt(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["x"] = 1
        with pytest.raises(KeyError), heap.attempt():
            with heap.transaction():
                heap.root["x"] = 2
            with pytest.raises(ValueError), heap.transaction():
                heap.root["x"] = 3
                raise ValueError
            assert heap.root["x"] == 2
            raise KeyError
        assert heap.root["x"] == 1


# ---- Undo beside marks, and the last snapshot.


def test_an_attempt_belongs_to_its_task(heap):
    """PY35. What another task of the thread changed would go with the attempt."""
    heap.root["x"] = 0

    async def tries(begun, end):
        with pytest.raises(KeyError):
            with heap.attempt():
                heap.root["x"] = 1
                begun.set()
                await end.wait()
                heap.root["x"] += 1  # its own task's, on both sides of an await
                with heap.attempt():
                    heap.root["x"] += 1
                raise KeyError

    async def main():
        begun, end = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(tries(begun, end))
        await begun.wait()
        for call in (lambda: heap.root.update(x=5), lambda: heap.mark("a"), heap.attempt().__enter__):
            with pytest.raises(taiyen.BusyError, match="another task"):
                call()
        assert heap.root["x"] == 1
        end.set()
        await task
        heap.root["y"] = 1

    asyncio.run(main())
    assert heap.root == {"x": 0, "y": 1}


def test_an_attempt_belongs_to_its_thread(heap):
    begun, end = threading.Event(), threading.Event()

    def other():
        with heap.attempt():
            begun.set()
            end.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    with pytest.raises(taiyen.BusyError, match="another thread"):
        heap.attempt().__enter__()
    heap.root["x"] = 1  # a part of it
    end.set()
    thread.join()
    with heap.attempt():
        pass
    assert heap.root == {"x": 1} and heap.marks() == []


# ---- Threads. PY38.
