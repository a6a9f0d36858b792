"""PY35. A transaction or step belongs to its task: what another task of the thread would change meanwhile is refused.

The story: while a task waited within `with heap.transaction()`, another one appended to a list. That was a part of the first one's
transaction, and was rolled back with it, though the other task's call had returned.
"""

import asyncio
import contextlib
import contextvars
import gc
import threading

import pytest
import taiyen


@pytest.fixture(params=["transactional", "snapshot"])
def heap(request, path):
    with taiyen.open(path, kind=request.param, log_bytes=1 << 20) as heap:
        heap.root.update({"a": 0, "b": 0, "log": []})
        yield heap
        assert heap.verify() == []


def scope(heap):
    return heap.transaction() if heap.kind == "transactional" else heap.step("one")


async def pay(heap, until, fails=False):
    with scope(heap):
        heap.root["a"] -= 5
        await until.wait()
        heap.root["log"].append("paid")  # its own task's, on both sides of an await
        if fails:
            raise KeyError("changed my mind")
        heap.root["b"] += 5


CHANGES = {
    "append": lambda heap: heap.root["log"].append("noted"),
    "store": lambda heap: heap.root.__setitem__("c", [1]),
    "delete": lambda heap: heap.root.__delitem__("b"),
    "collect": lambda heap: heap.collect(),
    "array": lambda heap: heap.array("numbers", 3),
    "begin": lambda heap: scope(heap).__enter__(),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_another_task_is_refused(heap, name, fails):
    async def both():
        until = asyncio.Event()
        first = asyncio.create_task(pay(heap, until, fails))
        await asyncio.sleep(0)
        assert heap.root["a"] == -5  # reads see what is there
        with pytest.raises(taiyen.BusyError, match="of another task of this thread"):
            CHANGES[name](heap)
        until.set()
        await asyncio.wait([first])
        return first.exception()

    error = asyncio.run(both())
    assert isinstance(error, KeyError) if fails else error is None
    assert heap.root == ({"a": 0, "b": 0, "log": []} if fails else {"a": -5, "b": 5, "log": ["paid"]})
    if name != "begin":
        CHANGES[name](heap)
    with scope(heap):
        heap.root["b"] = 7
    assert heap.root["b"] == 7


async def append(heap):
    heap.root["log"].append("noted")


async def spawn(how, heap):
    if how == "task":
        return await asyncio.create_task(append(heap))
    if how == "gather":
        return await asyncio.gather(append(heap))
    if how == "group":
        async with asyncio.TaskGroup() as group:
            group.create_task(append(heap))
        return None
    done = asyncio.get_running_loop().create_future()

    def callback():
        try:
            heap.root["log"].append("noted")
            done.set_result(None)
        except Exception as error:
            done.set_exception(error)

    asyncio.get_running_loop().call_soon(callback)
    return await done


@pytest.mark.parametrize("how", ["task", "gather", "group", "callback"])
def test_a_child_is_another_task(heap, how):
    """It has a copy of its parent's context."""

    async def parent():
        with scope(heap):
            heap.root["a"] = 1
            try:
                await spawn(how, heap)
            except (taiyen.BusyError, ExceptionGroup) as error:
                found = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
                assert isinstance(found, taiyen.BusyError)
            else:
                pytest.fail("it was let in")
            await append(heap)  # awaited without a task: the parent's own

    asyncio.run(parent())
    assert heap.root["a"] == 1 and heap.root["log"] == ["noted"]


def test_what_a_task_calls_is_its_own(heap):
    @contextlib.asynccontextmanager
    async def whole():
        with scope(heap):
            yield

    @contextlib.contextmanager
    def plain():
        with scope(heap):
            yield

    async def one():
        async with whole():
            heap.root["a"] = 1
            await asyncio.sleep(0)
            contextvars.copy_context().run(heap.root["log"].append, 1)
            contextvars.Context().run(heap.root["log"].append, 2)
        with plain():
            heap.root["b"] = 1
            await asyncio.sleep(0)
            heap.root["b"] = 2

    asyncio.run(one())
    assert heap.root == {"a": 1, "b": 2, "log": [1, 2]}
    with plain(), contextlib.ExitStack() as stack:
        stack.callback(heap.root["log"].append, 3)
        asyncio.run(append(heap))  # a loop that runs within the block is within it
    assert heap.root["log"] == [1, 2, "noted", 3]


def test_a_generator_is_a_part_of_its_task(heap):
    def reader():
        with scope(heap):
            heap.root["a"] = 100
            yield 1

    one = reader()
    next(one)
    heap.root["b"] = 7  # as within a contextmanager
    with pytest.raises(taiyen.BusyError, match="do not nest"), scope(heap):
        pass
    del one
    gc.collect()
    assert heap.root["a"] == heap.root["b"] == 0
    with scope(heap):
        heap.root["b"] = 8
    assert heap.root["b"] == 8


def test_a_generator_of_another_task_is_closed_here(heap):
    held = []

    async def leave():
        async def reader():
            with scope(heap):
                heap.root["a"] = 100
                yield 1

        held.append(reader())
        await held[0].__anext__()

    async def both():
        await asyncio.create_task(leave())
        with pytest.raises(taiyen.BusyError, match="of another task of this thread"):
            heap.root["b"] = 1
        await held.pop().aclose()
        heap.root["b"] = 2

    asyncio.run(both())
    assert heap.root["a"] == 0 and heap.root["b"] == 2


def test_what_runs_in_a_context_of_its_own_is_a_task(heap):
    """As schedulers do that are not asyncio's."""

    def worker(name):
        with scope(heap):
            heap.root[name] = 1
            yield
            heap.root[name] = 2

    first, second = contextvars.copy_context(), contextvars.copy_context()
    one = worker("a")
    first.run(next, one)
    with pytest.raises(taiyen.BusyError, match="of another task of this thread"):
        second.run(heap.root.__setitem__, "b", 1)
    with pytest.raises(taiyen.BusyError, match="of another task of this thread"):
        second.run(next, worker("b"))
    with pytest.raises(StopIteration):
        first.run(next, one)
    second.run(heap.root.__setitem__, "b", 3)
    assert heap.root["a"] == 2 and heap.root["b"] == 3


def test_greenlets_are_tasks(heap):
    greenlet = pytest.importorskip("greenlet")

    def worker():
        with scope(heap):
            heap.root["a"] = 1
            main.switch()
            heap.root["a"] = 2

    main = greenlet.getcurrent()
    one = greenlet.greenlet(worker)
    one.gr_context = contextvars.copy_context()
    one.switch()
    with pytest.raises(taiyen.BusyError, match="of another task of this thread"):
        heap.root["b"] = 1
    one.switch()
    heap.root["b"] = 2
    assert heap.root["a"] == 2 and heap.root["b"] == 2


@pytest.mark.parametrize("end", ["fails", "succeeds"])
def test_a_change_within_another_greenlets_change_is_refused(path, end):
    """Without a transaction or step of the program's: a change is one of its own, which the other one was a part of."""
    greenlet = pytest.importorskip("greenlet")
    for kind in ("transactional", "snapshot"):
        with taiyen.open(f"{path}-{kind}", kind=kind, log_bytes=1 << 20) as heap:
            heap.root.update({"sorted": [3, 1, 2], "log": []})
            if kind == "snapshot":
                with heap.step("a history"):
                    heap.root["a"] = 1

            def key(number):
                if number == 1:
                    main.switch()
                    if end == "fails":
                        raise KeyError(number)
                return number

            def work():
                with contextlib.suppress(KeyError):
                    heap.root["sorted"].sort(key=key)

            main = greenlet.getcurrent()
            one = greenlet.greenlet(work)
            one.switch()
            with pytest.raises(taiyen.BusyError, match="another greenlet of this thread"):
                heap.root["log"].append("noted")
            one.switch()
            heap.root["log"].append("noted")
            assert heap.root["sorted"] == ([1, 2, 3] if end == "succeeds" else [3, 1, 2])
            heap.root["sorted"].sort(key=lambda number: heap.root["log"].append(number) or -number)  # its own greenlet's
            assert heap.root["log"] == ["noted", *sorted([1, 2, 3], key=heap.root["log"].index)]
            assert heap.verify() == []


@pytest.mark.parametrize("guest", [False, True], ids=["trio alone", "trio within asyncio"])
def test_trios_tasks_are_tasks(heap, guest):
    """In its guest mode they are callbacks of asyncio's loop, in which no task of asyncio runs."""
    trio = pytest.importorskip("trio")
    refused = []

    async def note():
        try:
            heap.root["log"].append("noted")
        except taiyen.BusyError:
            refused.append(True)

    async def parent():
        with contextlib.suppress(KeyError), scope(heap):
            heap.root["a"] = 1
            async with trio.open_nursery() as nursery:
                nursery.start_soon(note)
            heap.root["b"] = 1  # its own, after a wait
            raise KeyError

    async def host():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        trio.lowlevel.start_guest_run(parent, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=done.set_result)
        (await done).unwrap()

    if guest:
        asyncio.run(host())
    else:
        trio.run(parent)
    assert refused == [True] and heap.root == {"a": 0, "b": 0, "log": []}
    asyncio.run(append(heap))
    assert heap.root["log"] == ["noted"]


def test_another_threads_tasks_wait_for_a_transaction(path):
    with taiyen.open(path, kind="transactional", log_bytes=1 << 20) as heap:
        heap.root["log"] = []

        async def both():
            until, begun = asyncio.Event(), threading.Event()

            async def first():
                with heap.transaction():
                    heap.root["log"].append("first")
                    begun.set()
                    await until.wait()

            async def second():
                await asyncio.to_thread(lambda: begun.wait() and heap.root["log"].append("second"))

            tasks = [asyncio.create_task(first()), asyncio.create_task(second())]
            await asyncio.to_thread(begun.wait)
            until.set()
            await asyncio.gather(*tasks)

        asyncio.run(both())
        assert heap.root["log"] == ["first", "second"]


def test_a_scope_ends_its_own_transaction_alone(heap):
    first = scope(heap)
    first.__enter__()
    first.__exit__(None, None, None)
    with scope(heap):
        heap.root["a"] = 1
        first.__exit__(KeyError, KeyError(), None)  # once more
        with contextlib.suppress(taiyen.ArgumentError):
            first.__exit__(None, None, None)
        heap.root["b"] = 1
        assert heap.kind != "transactional" or heap._in_transaction
    assert heap.root["a"] == 1
