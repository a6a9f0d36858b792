"""Goal: a heap goes back to what it was at a mark, and so do all objects that stand for something in it: none of them ever stands
for something else. Method: examples of each rule; a model in which every container has a number of its own, which its objects
have to show; threads that commit meanwhile."""

import asyncio
import copy
import gc
import os
import shutil
import signal
import tempfile
import threading

import pytest
import taiyen
from conftest import EFFORT
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from test_interruptions import run, run_at_once

KINDS = ["volatile", "snapshot", "undo", "transactional"]


def made(kind, path):
    """An open heap; "undo": a snapshot heap with a history."""
    if kind == "volatile":
        return taiyen.volatile()
    heap = taiyen.open(path, kind="transactional" if kind == "transactional" else "snapshot", log_bytes=1 << 20)
    if kind == "undo":
        with heap.step():
            pass
    return heap


@pytest.fixture(params=KINDS)
def heap(request, path):
    heap = made(request.param, path)
    yield heap
    if not heap.closed:
        assert heap.verify() == []
        heap.close()


@taiyen.record
class City:
    name: taiyen.text(10)
    people: int = 0


# ---- Marks.


def test_back_and_forth(heap):
    """PY37."""
    root = heap.root
    root["plan"] = {"rooms": [1, 2], "name": "a text of some length"}
    plan, rooms = root["plan"], root["plan"]["rooms"]
    heap.mark("before")
    rooms.append(3)  # unpacks it
    plan["more"] = [{"of": "it"}]
    more = plan["more"]
    more.append(1)
    heap.mark("after")
    heap.return_to("before")
    assert root == {"plan": {"rooms": [1, 2], "name": "a text of some length"}}
    assert plan is root["plan"] and rooms is plan["rooms"] and rooms == [1, 2]
    with pytest.raises(taiyen.DeletedError, match="a return"):
        more[0]
    heap.return_to("after")
    assert plan["more"] == [{"of": "it"}, 1] and rooms == [1, 2, 3] and rooms is plan["rooms"]
    with pytest.raises(taiyen.DeletedError):
        more[0]  # for good
    del root["plan"]
    heap.return_to("after")
    assert plan["rooms"] is rooms and root["plan"] is plan
    heap.drop_mark("before")
    heap.drop_mark("after")
    assert heap.marks() == [] and rooms == [1, 2, 3]


def test_an_object_is_found_on_each_branch(heap):
    """PY3, PY37. A small list is packed until it is changed: on each branch it becomes another one then, elsewhere."""
    heap.root["plan"] = [[1], 2]
    plan, part = heap.root["plan"], heap.root["plan"][0]
    heap.mark("fork")
    for name in "abc":
        part.append(name)
        heap.mark(name)
        heap.return_to("fork")
        assert part == [1] and plan == [[1], 2]
        heap.root[name] = [name]
    for name in "bcab":
        heap.return_to(name)
        assert part == [1, name] and plan[0] is part and heap.root["plan"] is plan
        for _ in range(3):
            with heap.attempt() as tried:
                part.append(2)
                tried.go_back()
    heap.return_to("fork")
    assert heap.root["plan"] is plan and plan[0] is part and part == [1]


def test_marks_are_listed(heap):
    heap.mark("a")
    heap.root["x"] = [1]
    heap.mark("b")
    heap.return_to("a")
    heap.mark("ç")
    marks = heap.marks()
    assert [(mark.name, mark.parent, mark.current) for mark in marks] == [("a", None, False), ("b", "a", False), ("ç", "a", True)]
    assert marks[1].changed_pages > 0 and marks[1].copied_bytes > 0 and marks[0].time <= marks[1].time <= marks[2].time
    assert isinstance(marks[0], taiyen.Mark)
    with pytest.raises(taiyen.ExistsError):
        heap.mark("b")
    for call in (heap.return_to, heap.drop_mark):
        with pytest.raises(taiyen.NotFoundError, match=r"Heap.marks\(\)"):
            call("other")
    for name in ("", "x" * 64, "a\nb", "a\0b", "\udc00"):
        with pytest.raises(ValueError):
            heap.mark(name)
    with pytest.raises(TypeError):
        heap.mark(5)


def test_no_object_stands_for_one_of_another_branch(heap):
    """PY37, VA15. What is made on two branches has the same addresses; its numbers differ."""
    heap.mark("fork")
    objects = []
    for name in ("left", "right"):
        heap.return_to("fork")
        heap.root["x"] = [name]
        heap.root["x"].append([name] * 9)
        heap.root["a"] = memoryview(name.encode())
        objects.append((heap.root["x"], heap.root["x"][1], heap.root["a"]))
        heap.mark(name)
    heap.return_to("left")
    assert heap.root["x"][0] == "left" and bytes(taiyen.plain(heap.root["a"])) == b"left"
    for it in (*objects[0], *objects[1]):
        with pytest.raises(taiyen.DeletedError):
            len(it) if isinstance(it, taiyen.List) else it.shape


def test_no_row_is_of_another_branch(heap):
    """PY37. Records that are appended change no stamp of their list."""
    heap.root["cities"] = [City("Lisbon")]
    cities, first = heap.root["cities"], heap.root["cities"][0]
    heap.mark("fork")
    cities.append(City("Porto", 1))
    heap.mark("left")
    heap.return_to("fork")
    cities.append(City("Faro", 2))
    row = cities[1]
    heap.return_to("left")
    assert cities[1].name == "Porto"
    with pytest.raises(taiyen.DeletedError):
        row.name
    kept = cities[1]
    kept.people = 5
    heap.return_to("left")
    assert kept.people == 1 and kept is cities[1] and heap.root["cities"] is cities
    with pytest.raises(taiyen.DeletedError):
        first.name
    assert cities[0].name == "Lisbon"


def test_what_only_an_object_keeps(heap):
    """What nothing stores stays for its object's sake: so it was, or was not, at the mark."""
    heap.root["it"] = [[1], [2]]
    it, part = heap.root["it"], heap.root["it"][0]
    heap.mark("stored")
    del heap.root["it"]
    it.append([3])
    heap.mark("kept")
    heap.return_to("stored")
    assert heap.root["it"] is it and it == [[1], [2]] and it[0] is part
    heap.return_to("kept")
    assert "it" not in heap.root and it == [[1], [2], [3]] and it[0] is part
    del it, part
    heap.return_to("stored")
    del heap.root["it"]
    heap.return_to("kept")
    heap.root["x"] = 1  # sweeps what is kept for nobody
    assert heap.verify() == []


def test_keys_and_shapes_of_another_state(heap):
    """VA11, PY8. Keys and shapes that are remembered are in the state that there is."""
    heap.mark("before")
    for _ in range(3):
        heap.root["list"] = [{"a key of some length": number, "other": str(number) * 9} for number in range(5)]
        heap.root["set"] = {f"a member of some length {number}" for number in range(9)}
        heap.mark("after")
        heap.return_to("before")
        heap.root["other"] = [{"a key of some length": 1, "second": 2}] * 3
        heap.return_to("after")
        assert heap.root["list"][4] == {"a key of some length": 4, "other": "4" * 9}
        heap.root["list"].append({"a key of some length": 1, "other": 2})
        heap.root["set"].add("a member of some length 5")
        assert heap.verify() == [] and len(heap.root["set"]) == 9
        heap.return_to("before")
        heap.drop_mark("after")
        assert heap.root == {}


def test_an_iteration_notices_a_return(heap):
    heap.root["d"] = {1: 1, 2: 2, 3: 3}
    heap.mark("before")
    heap.root["d"][4] = 4
    with pytest.raises((RuntimeError, taiyen.DeletedError)):
        for _ in heap.root["d"]:
            heap.return_to("before")
    for _ in heap.root["d"]:
        heap.return_to("before")  # nothing has changed


def test_a_return_is_durable(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["x"] = 1
        heap.mark("one")
        heap.root["x"] = 2
        heap.return_to("one")
        heap.discard()
    with taiyen.open(path) as heap:
        assert heap.root == {"x": 1} and heap.marks() == []


# ---- Arrays. PY37.


def test_arrays_go_back_with_their_views(heap):
    numpy = pytest.importorskip("numpy")
    if heap._undo_attached:
        pytest.skip("a history may hold what was deleted")
    view = heap.array("grid", (200, 100))
    heap.mark("zeros")

    def fill(number):
        if heap.kind != "transactional":
            view[:] = number
            return
        with heap.transaction():
            view[:] = number

    fill(1)
    heap.root["other"] = [1]
    with heap.attempt() as tried:
        fill(2)
        heap.array("grid")[0, 0] == 2  # another view
        tried.go_back()
    assert view.min() == view.max() == 1
    heap.return_to("zeros")
    assert not view.any() and heap.root["grid"].numpy().base is not None
    fill(3)
    assert heap.array("grid").sum() == 3 * 200 * 100
    heap.root["late"] = numpy.ones(5)
    late = heap.array("late")
    with pytest.raises(taiyen.LiveViewsError, match="late"):
        heap.return_to("zeros")
    assert late.sum() == 5 and view[0, 0] == 3
    del late
    heap.mark("threes")
    heap.return_to("zeros")
    with pytest.raises(taiyen.LiveViewsError):
        heap.return_to("threes")  # forwards; the array may be gone there
    del view
    heap.return_to("threes")
    assert heap.array("grid")[5, 5] == 3 and heap.array("late").sum() == 5


def test_views_that_could_lose_their_memory(heap):
    heap.root["cities"] = [City("Lisbon", 1)]
    heap.root["a"] = memoryview(b"abc")
    with memoryview(heap.root["cities"]):
        heap.mark("one")
        with pytest.raises(taiyen.LiveViewsError):
            heap.return_to("one")
    heap.drop_mark("one")
    if heap._undo_attached:
        heap.mark("deleted")
        del heap.root["a"]
        heap.undo()
        with memoryview(heap.root["a"]), pytest.raises(taiyen.LiveViewsError):
            heap.return_to("deleted")
    array = heap.root["a"]
    heap.root["a"] = 5
    heap.mark("replaced")
    heap.root["a"] = array
    assert array.shape == (3,)
    heap.return_to("replaced")
    assert heap.root["a"] == 5 and bytes(taiyen.plain(array)) == b"abc"  # its object has kept it


# ---- Attempts. PY39.


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


@pytest.mark.parametrize("kind", ["volatile", "undo"])
def test_history_is_that_of_the_mark(kind, path):
    with made(kind, path) as heap:
        heap.mark("without a step")
        with heap.step("one"):
            heap.root["x"] = [1]
        x = heap.root["x"]
        heap.undo()
        heap.mark("undone")
        with heap.step("two"):
            heap.root["y"] = [2]
        y = heap.root["y"]
        assert [step.label for step in heap.history() if step.label] == ["two"]
        heap.return_to("undone")
        with pytest.raises(taiyen.DeletedError):
            y[0]
        heap.redo()
        assert heap.root == {"x": [1]} and heap.verify() == []
        with pytest.raises(taiyen.DeletedError):
            x[0]  # for good
        heap.return_to("without a step")
        assert heap._undo_attached == (kind == "undo") and not any(step.label for step in heap.history())
        heap.root["z"] = 1
        heap.return_to("undone")
        assert heap._undo_attached and [(step.label, step.undone) for step in heap.history()][:1] == [("one", True)]
        heap.redo()
        heap.undo()
        assert heap.root == {} and heap.verify() == []


def test_revert(path):
    with taiyen.open(path) as heap:
        heap.root["x"] = 1
        with pytest.raises(taiyen.NotFoundError, match="no snapshot"):
            heap.revert()
        heap.root["l"] = [1]
        l = heap.root["l"]
        l.append(2)
        heap.snapshot()
        heap.root["x"] = 2
        l.clear()
        heap.root["new"] = [1]
        new = heap.root["new"]
        new.append(2)
        heap.revert()
        assert heap.root == {"x": 1, "l": [1, 2]} and l == [1, 2] and l is heap.root["l"]
        with pytest.raises(taiyen.DeletedError):
            new[0]
        heap.root["a"] = memoryview(b"abc")
        heap.snapshot()
        with memoryview(heap.root["a"]), pytest.raises(taiyen.LiveViewsError, match="a"):
            heap.revert()
        with pytest.raises(taiyen.BusyError), heap.step():
            heap.revert()
    with taiyen.open(path) as heap:
        del heap.root["l"]
        heap.revert()
        assert heap.root["l"] == [1, 2]
        heap.mark("a")
        heap.root["x"] = 5
        heap.revert()
        assert [mark.name for mark in heap.marks()] == ["a"]
        heap.discard()


def test_a_snapshot_amid_a_step_is_reverted_to(path):
    """PY17. The half of the step is taken back, as by an open."""
    with taiyen.open(path) as heap:
        heap.root["x"] = 1
        with heap.step("half"):
            heap.root["x"] = 2
            heap.snapshot()
            heap.root["x"] = 3
        heap.revert()
        assert heap.root == {"x": 1} and heap.verify() == []
        with heap.step("another"):
            heap.root["x"] = 4
        heap.undo()
        assert heap.root == {"x": 1}


# ---- What is refused.


def test_between_changes_alone(heap):
    """PY38."""
    heap.mark("one")

    def key(number):
        with pytest.raises(taiyen.BusyError, match="a change of this heap"):
            heap.return_to("one")
        return -number

    heap.root["l"] = [1, 2]
    heap.root["l"].sort(key=key)
    assert heap.root["l"] == [2, 1]
    calls = [lambda: heap.mark("two"), lambda: heap.return_to("one"), lambda: heap.attempt().__enter__()]
    with heap.transaction() if heap.kind == "transactional" else heap.step():
        for call in calls:
            with pytest.raises(taiyen.BusyError, match="end the"):
                call()
    heap.close()
    for call in (*calls, heap.marks, lambda: heap.drop_mark("one"), heap.revert):
        with pytest.raises(taiyen.ClosedError):
            call()


def test_kinds_that_cannot_go_back(path):
    with taiyen.open(path, kind="archive") as heap:
        for call in (lambda: heap.mark("a"), heap.attempt().__enter__, heap.revert):
            with pytest.raises(taiyen.UnsupportedError):
                call()
    with taiyen.volatile() as heap, pytest.raises(taiyen.UnsupportedError, match="Heap.return_to"):
        heap.revert()
    taiyen.open(f"{path}-other").close()
    with taiyen.open(f"{path}-other", readonly=True) as heap, pytest.raises(taiyen.DeniedError):
        heap.mark("a")


def test_a_forked_child_has_no_marks(path):
    for heap in (taiyen.volatile(), taiyen.open(path)):
        heap.mark("one")
        with pytest.raises(KeyError), heap.attempt():
            heap.root["x"] = 1
            child = os.fork()
            if child == 0:
                right = 0
                for call in (lambda: heap.mark("a"), lambda: heap.return_to("one"), heap.marks, heap.revert):
                    try:
                        call()
                    except taiyen.ForkedError:
                        right += 1
                os._exit(right)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
            raise KeyError
        assert heap.root == {}
        heap.close()


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


def test_marks_wait_for_transactions_without_the_gil(path):
    """A thread that has the heap goes on, and ends its transaction, while another one waits to mark it."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.mark("one")
    begun, asked = threading.Event(), threading.Event()

    def other():
        with heap.transaction():
            heap.root["x"] = 1
            begun.set()
            asked.wait()
            for _ in range(1000):
                heap.root["x"] += 1

    for call in (lambda: heap.mark("two"), lambda: heap.return_to("one"), lambda: heap.attempt().__enter__().keep()):
        begun.clear()
        asked.clear()
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
        asked.set()
        call()
        thread.join()
    heap.return_to("two")
    assert heap.root == {"x": 1001}
    heap.return_to("one")
    assert heap.root == {} and heap.verify() == []
    heap.close()


@pytest.mark.parametrize("threads", [1, 6])
def test_who_marks_gets_its_turn(path, threads):
    """Beside threads that always have the next transaction ready."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.root.update({number: 0 for number in range(threads)})
    done, commits = threading.Event(), [0] * threads

    def commit(number):
        while not done.is_set():
            with heap.transaction(wait=False):
                heap.root[number] += 1
                done.wait(0.001)
            commits[number] += 1

    most = 0

    def marks():
        nonlocal most
        try:
            for number in range(20):
                before = sum(commits)
                heap.mark(f"{number}")
                most = max(most, sum(commits) - before)
                heap.drop_mark(f"{number}")
        finally:
            done.set()

    workers = [threading.Thread(target=commit, args=(number,)) for number in range(threads)] + [threading.Thread(target=marks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most <= 3 * threads + 3, most  # those that waited already go first
    assert heap.root == dict(enumerate(commits)) and heap.verify() == []
    heap.close()


def test_threads_commit_beside_returns(path):
    """Money goes from account to account in each transaction, in whatever state of the heap that is."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.root["accounts"] = {number: 100 for number in range(8)}
    heap.mark("start")
    wrong, busy = [], 4

    def pays(number):
        nonlocal busy
        try:
            for turn in range(int(60 * EFFORT)):
                with heap.transaction(wait=False):
                    accounts = heap.root["accounts"]
                    accounts[number] -= 1
                    accounts[(number + turn) % 8] += 1
                heap.root[f"note {number}"] = [turn] * 3  # one by itself
                heap.root["accounts"].get(number)
        except BaseException as error:
            wrong.append(error)
        busy -= 1

    def goes():
        turn = 0
        try:
            while busy:
                turn += 1
                with heap.attempt() as tried:
                    if turn % 2:
                        tried.go_back()
                if turn % 5 == 0:
                    heap.mark("here")
                    heap.return_to("start")
                    assert sum(taiyen.plain(heap.root["accounts"]).values()) == 800
                    heap.return_to("here")
                    heap.drop_mark("here")
        except BaseException as error:
            wrong.append(error)

    run_at_once(*(lambda number=number: pays(number) for number in range(4)), goes)
    assert wrong == [] and heap.verify() == []
    assert sum(heap.root["accounts"].values()) == 800
    heap.discard()
    with taiyen.open(path) as heap:
        assert sum(heap.root["accounts"].values()) == 800


@pytest.mark.parametrize("kind", ["volatile", "snapshot", "undo"])
def test_threads_change_beside_returns(kind, path):
    """PY13, PY38. A change is in a state whole, or not at all."""
    heap = made(kind, path)
    heap.root["list"] = []
    heap.mark("start")
    wrong, busy = [], 3

    def adds(number):
        nonlocal busy
        try:
            for turn in range(int(150 * EFFORT)):
                try:
                    heap.root["list"].extend([[number, turn], {"number": number}, (turn, [number])])
                except (taiyen.DeletedError, RuntimeError):
                    pass  # the list was gone, or what was made for it
        except BaseException as error:
            wrong.append(error)
        busy -= 1

    def goes():
        try:
            while busy:
                heap.mark("here")
                heap.return_to("start")
                heap.return_to("here")
                heap.drop_mark("here")
                found = heap.root["list"][:]
                if len(found) % 3 or any(found[at + 1] != {"number": found[at][0]} for at in range(0, len(found), 3)):
                    wrong.append(found)
        except BaseException as error:
            wrong.append(error)

    run_at_once(*(lambda number=number: adds(number) for number in range(3)), goes)
    assert wrong == [] and heap.verify() == [] and len(heap.root["list"]) % 3 == 0
    heap.close()


def test_signals_are_heard_while_a_mark_waits(path):
    """PY15."""
    result = run('''
        import signal, sys, taiyen, threading
        heap = taiyen.open(sys.argv[1], kind="transactional", log_bytes=1 << 20)
        heap.mark("one")
        begun, end = threading.Event(), threading.Event()
        def other():
            with heap.transaction():
                begun.set()
                end.wait(60)
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait()
        def on_alarm(*_): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, on_alarm)
        for use in (lambda: heap.mark("two"), lambda: heap.return_to("one"), heap.attempt().__enter__):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            try:
                use()
            except KeyboardInterrupt:
                print("heard", [mark.name for mark in heap.marks()])
        end.set()
        thread.join()
        with heap.attempt():
            heap.root["y"] = 1
        heap.close()
    ''', path)
    assert result.stdout == "heard ['one']\n" * 3 and result.returncode == 0, result


# ---- A model. PY37.

NAMES = st.sampled_from("abcd")
PLACES = st.integers(0, 40)


class Going(RuleBasedStateMachine):
    """Each container has a number, which nothing else has: {"number": N, ...} or [N, ...]. An object of the heap shows its number,
    or that it was deleted."""

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
