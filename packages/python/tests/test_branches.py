"""Goal: what a heap was at a durable mark can be seen, and become a heap of its own, in later runs and in forked workers.
Method: an example of each; other runs are processes of their own."""

import os
import threading

import pytest
import taiyen
from test_interruptions import run


@pytest.fixture(params=["snapshot", "transactional"])
def heap(request, path):
    heap = taiyen.open(path, kind=request.param, log_bytes=1 << 20)
    yield heap
    if not heap.closed:
        assert heap.verify() == []
        heap.close()


def forked(function):
    """The exit code of a child that calls it."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = function() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_durable_mark(heap, path):
    """PY37. In its own run as others are."""
    root = heap.root
    root["plan"] = [1, 2]
    plan = root["plan"]
    heap.mark("before", durable=True)
    plan.append({"of": "it"})
    heap.mark("in memory")
    heap.mark("after", durable=True)
    assert [(mark.name, mark.parent, mark.durable) for mark in heap.marks()] == [
        ("after", "before", True), ("before", None, True), ("in memory", None, False)]  # fmt: skip
    heap.return_to("before")
    assert plan == [1, 2] and plan is root["plan"]
    heap.return_to("after")
    assert plan == [1, 2, {"of": "it"}]
    heap.return_to("before")
    heap.close()
    with taiyen.open(path, readonly=True) as heap:
        assert heap.root == {"plan": [1, 2]} and [mark.name for mark in heap.marks()] == ["after", "before"]
    for readonly in (True, "copy"):
        with taiyen.open(path, readonly=readonly, mark="after") as heap:
            assert heap.root == {"plan": [1, 2, {"of": "it"}]} and heap.kind == "snapshot" and heap.readonly
            with pytest.raises(taiyen.DeniedError):
                heap.root["x"] = 1
    with taiyen.open(path) as heap:
        heap.drop_mark("after")
    with pytest.raises(taiyen.NotFoundError, match="after"):
        taiyen.open(path, readonly=True, mark="after")
    for wrong in ("", "x" * 64):
        with pytest.raises(taiyen.ArgumentError, match="name"):
            taiyen.open(path, readonly=True, mark=wrong)
    with pytest.raises(ValueError, match="readonly"):
        taiyen.open(path, mark="before")


def test_marks_of_other_runs(path):
    """VA15. A number may be of another container there."""
    made = """
        import sys, taiyen
        with taiyen.open(sys.argv[1]) as heap:
            heap.root["a"] = [[]] * 3
            heap.mark("one", durable=True)
            del heap.root["a"]
    """
    assert run(made, path).returncode == 0
    with taiyen.open(path) as heap:
        heap.root["b"] = {"of": [1] * 100}
        with pytest.raises(taiyen.UnsupportedError, match="another run.*taiyen return"):
            heap.return_to("one")
        assert heap.root == {"b": {"of": [1] * 100}}
        with pytest.raises(taiyen.ExistsError):
            heap.mark("one", durable=True)
        with pytest.raises(taiyen.UnsupportedError):
            heap.return_to("one")
        heap.drop_mark("one")
        heap.mark("one", durable=True)
        heap.root["c"] = 1
        heap.return_to("one")
        assert heap.root == {"b": {"of": [1] * 100}}


def test_not_durable():
    with taiyen.volatile() as heap:
        with pytest.raises(taiyen.UnsupportedError, match="volatile"):
            heap.mark("a", durable=True)
        assert heap.marks() == []
        with pytest.raises(taiyen.UnsupportedError, match="volatile"):
            heap.branch("any")


def test_a_branch(heap, path):
    heap.root["plan"] = {"rooms": [1, 2], "array": 5}
    heap.root["numbers"] = 7
    heap.branch(f"{path}-branch")
    heap.root["numbers"] = 8
    with pytest.raises(taiyen.ExistsError):
        heap.branch(f"{path}-branch")
    with pytest.raises(TypeError):
        heap.branch(5)
    if heap.kind == "transactional":
        with heap.transaction(), pytest.raises(taiyen.BusyError, match="transaction"):
            heap.branch(f"{path}-other")
    else:
        with heap.step("one"), pytest.raises(taiyen.BusyError, match="step"):
            heap.branch(f"{path}-other")
    heap.close()
    with taiyen.open(f"{path}-branch") as branch:
        assert branch.root == {"plan": {"rooms": [1, 2], "array": 5}, "numbers": 7} and branch.kind == "snapshot"
        branch.root["plan"]["rooms"].append(3)
        assert branch.verify() == []
    with taiyen.open(path, readonly=True) as heap:
        assert heap.root == {"plan": {"rooms": [1, 2], "array": 5}, "numbers": 8}
        heap.branch(f"{path}-other")
    with taiyen.open(f"{path}-other") as heap:
        assert heap.root == {"plan": {"rooms": [1, 2], "array": 5}, "numbers": 8}


def test_a_branch_at_a_mark_beside_the_writer(heap, path):
    heap.root["n"] = 1
    heap.mark("one", durable=True)
    heap.root["n"] = 2

    def look():
        with taiyen.open(path, readonly="copy", mark="one") as view:
            view.branch(f"{path}-branch")
            return view.root["n"]

    assert forked(look) == 1
    heap.close()
    with taiyen.open(f"{path}-branch") as branch:
        assert branch.root == {"n": 1}


def test_many_futures(path):
    """Each worker goes on from what the heap was at the fork."""
    heap = taiyen.open(path)
    heap.root["plan"] = list(range(1000))
    for n in range(5):
        heap.root["n"] = n

        def go_on(n=n):
            heap.branch(f"{path}-{n}")
            with taiyen.open(f"{path}-{n}") as own:
                own.root["plan"].append(own.root["n"] * 10)

        assert forked(go_on) == 0
    heap.close()
    for n in range(5):
        with taiyen.open(f"{path}-{n}") as own:
            assert own.root["plan"] == [*range(1000), n * 10] and own.verify() == []


def test_transactions_do_not_fork(path):
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)

    def branch():
        try:
            heap.branch(f"{path}-branch")
        except taiyen.ForkedError:
            return 7

    assert forked(branch) == 7
    heap.close()


def test_a_branch_waits_for_transactions(path):
    """Without the GIL: the thread that has the transaction needs it."""
    heap = taiyen.open(path, kind="transactional", log_bytes=1 << 20)
    heap.root["x"] = 0
    begun = threading.Event()

    def other():
        with heap.transaction():
            heap.root["x"] += 1
            begun.set()
            for _ in range(2000):
                heap.root["x"] += 1

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    heap.branch(f"{path}-branch")
    thread.join()
    heap.close()
    with taiyen.open(f"{path}-branch") as branch:
        assert branch.root == {"x": 2001}
