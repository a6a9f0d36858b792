"""Goal: a heap goes back to what it was at a mark, and so do all objects that stand for something in it: none of them ever stands
for something else. Method: an example of each rule."""

import os

import pytest
import taiyen

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
