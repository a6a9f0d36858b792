"""Goal: several processes change one heap, and each sees whole states alone, in its own objects (PY41). Method: other processes do
as their standard input says; readers, threads and pools of processes here; kills at any moment."""

import concurrent.futures
import dataclasses
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading

import pytest
import taiyen
from conftest import EFFORT

OTHER = """
import sys, taiyen
heap = taiyen.open(sys.argv[1], shared=True, log_bytes=1 << 20)
root = heap.root
print("ready", flush=True)
for line in sys.stdin:
    try:
        exec(line)
        print("done", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
heap.close()
"""


class Other:
    def __init__(self, path):
        self.process = subprocess.Popen([sys.executable, "-c", OTHER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def __call__(self, line):
        self.ask(line)
        assert self.answer() == "done"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture(params=["writes the log", "follows"])
def heap(request, path):
    """A shared heap, with another process's, `heap.other`, which opened it before or after this one."""
    other = Other(path) if request.param == "follows" else None
    heap = taiyen.open(path, shared=True, log_bytes=1 << 20)
    heap.other = other or Other(path)
    yield heap
    if not heap.closed:
        assert heap.verify() == []
        heap.close()
    if heap.other.process.poll() is None:
        heap.other.end()


def test_a_change_begins_on_the_newest_state(heap):
    heap.root["n"] = 1
    heap.other("root['n'] += 1; root['l'] = list(range(100))")
    assert heap.refresh() is True and heap.refresh() is False
    assert heap.root["n"] == 2 and heap.root["l"] == list(range(100))
    heap.other("del root['l']")
    assert "l" not in heap.root
    heap.other("root['n'] += 1")
    with heap.transaction():
        assert heap.root["n"] == 3
        assert heap.refresh(wait=60) is False
    heap.other("root['n'] += 1")
    heap.root["m"] = 0
    assert heap.root["n"] == 4
    heap.other("with heap.transaction(): root['n'] = 5")
    with pytest.raises(ZeroDivisionError), heap.transaction():
        heap.root["n"] = 1 // 0
    assert heap.root["n"] == 5


def test_what_is_taken_out_came_meanwhile(heap):
    """No change is begun for what is missing, and others may have brought it."""
    from collections import deque

    heap.root.update(d={}, l=[], q=deque(), s=set())
    d, row, q, s = (heap.root[name] for name in "dlqs")
    heap.other("root['d']['a'] = 1; root['d']['b'] = [2]; root['d']['c'] = 3; root['l'] += [1, 2]; root['q'].append(1); root['s'].add(4)")
    assert d.pop("a") == 1
    heap.other("root['d']['a'] = 1")
    assert d.setdefault("a", 5) == 1 and d.popitem() == ("a", 1)
    heap.other("root['q'].append(2)")
    assert [q.popleft(), q.pop()] == [1, 2]
    heap.other("root['l'].append(3); root['s'].add(5)")
    row.remove(3)
    assert row.pop() == 2 and s.pop() == 5
    with pytest.raises(IndexError):
        q.popleft()
    with pytest.raises(KeyError):
        d.pop("none")


def test_objects_stand_for_what_they_did(heap):
    heap.root.update(small={"a": 1}, large={str(i): i for i in range(100)}, gone=list(range(50)))
    small, large, gone = heap.root["small"], heap.root["large"], heap.root["gone"]
    heap.other("root['large']['x'] = 1; del root['gone']; root['new'] = [list(range(50)) for _ in range(100)]")
    assert large["x"] == 1 and small["a"] == 1 and heap.root["large"] is large and not gone.is_alive
    with pytest.raises(taiyen.DeletedError, match="another process"):
        len(gone)
    assert all(new == list(range(50)) for new in heap.root["new"])
    with heap.transaction():
        large["y"] = 2
    heap.other("root['small']['b'] = 2")
    heap.refresh()
    assert small == {"a": 1, "b": 2} and small is heap.root["small"]
    with pytest.raises(ZeroDivisionError), heap.transaction():
        del heap.root["large"]
        heap.root["small"] = 1 / 0
    assert heap.root["large"] is large and large["y"] == 2


def test_an_object_is_not_that_of_another(heap):
    """A container of another process comes to lie where one was that an object here stood for."""
    for turn in range(20):
        heap.root["l"] = [turn, *range(30)]
        here = heap.root["l"]
        heap.other(f"del root['l']; root['l'] = ['other {turn}', *range(30)]")
        heap.refresh()
        assert not here.is_alive and heap.root["l"][0] == f"other {turn}"


@taiyen.record
@dataclasses.dataclass
class Point:
    x: int
    y: int


def test_a_row_is_of_one_state(heap):
    heap.root["points"] = [Point(i, i) for i in range(10)]
    points = heap.root["points"]
    row = points[5]
    heap.other("root['points'][5].y = 6; root['points'].append(root['points'][0])")
    assert (row.x, row.y) == (5, 6)
    heap.other("del root['points'][5]")
    with pytest.raises(taiyen.DeletedError):
        row.x  # noqa: B018
    assert points[5].x == 6
    row = points[5]
    heap.root["n"] = 1
    row.y = 7
    assert points[5].y == 7
    heap.other("root['points'][5].y = 8")
    row.x = 9
    assert (points[5].x, points[5].y) == (9, 8)
    heap.other("root['points'].reverse()")
    with pytest.raises(taiyen.DeletedError):
        row.y = 9


def test_an_iteration_notices_changes(heap):
    """As it does those of other threads."""
    heap.root.update(d={str(i): i for i in range(100)}, s=set(range(100)))
    d, s = heap.root["d"], heap.root["s"]
    for over in (d, s, d.items()):
        iteration = iter(over)
        next(iteration)
        heap.other("root['d']['7'] -= 1")
        assert d["7"] < 7
        next(iteration)
        heap.other(f"root['d']['new {next(iter(d))}'] = 1; del root['d']['{next(iter(d))}']; root['s'].remove({next(iter(s))}); root['s'].add(-{next(iter(s))} - 1)")
        next(iteration)  # no other state is shown before something is read
        assert len(d) == len(s) == 100
        with pytest.raises(RuntimeError, match="changed"):
            next(iteration)
    with heap.transaction():
        iteration = iter(d.items())
        next(iteration)
        heap.other.ask("root['d'].clear()")
        assert len(list(iteration)) == 99
    assert heap.other.answer() == "done" and not heap.root["d"]
    heap.root["d"].update({str(i): i for i in range(100)})
    with pytest.raises(ZeroDivisionError), heap.transaction():
        del heap.root["d"]["7"]
        iteration = iter(heap.root["d"])
        next(iteration)
        1 / 0  # noqa: B018
    heap.other("del root['d']['8']")
    assert "8" not in heap.root["d"]
    with pytest.raises(RuntimeError, match="rolled back"):
        next(iteration)


def test_what_one_moves_stays(heap):
    """A container that is stored nowhere for a while belongs to the process that has an object of it."""
    heap.root["old"] = list(range(100))
    moved = heap.root["old"]
    del heap.root["old"]
    heap.other("root['a'] = list(range(1000)); heap.collect(); root['a'] = 1")
    heap.other("root['x'] = list(range(9)); x = root['x']; del root['x']; del x; root['a'] = 2")  # it keeps one itself
    assert moved == list(range(100))
    heap.root["new"] = moved
    heap.other("assert root['new'] == list(range(100)); root['a'] = 2")
    del moved
    heap.root["b"] = 1
    assert heap.verify() == []


def test_what_the_dead_kept_goes(heap, path):
    heap.root["there"] = 1
    heap.refresh()
    before = heap.stats()["live_bytes"]
    for _ in range(3):
        heap.other("root['big'] = [str(i) * 10 for i in range(1000)]; kept = root['big']; del root['big']")
        heap.other.kill()
        heap.other = Other(path)
        heap.other("root['n'] = 1")
    heap.root["n"] = 2
    assert heap.stats()["live_bytes"] < before + 5000
    heap.other("root['big'] = [str(i) * 10 for i in range(1000)]; kept = root['big']; del root['big']")
    heap.other.kill()
    heap.close()
    with taiyen.open(path) as alone:
        alone.root["n"] = 3
        assert alone.stats()["live_bytes"] < before + 5000
        moved = alone.root["l"] = list(range(100))
        moved = alone.root["l"]
        del alone.root["l"]
        alone.root["l"] = moved
        assert alone.verify() == []
    heap.other = Other(path)
    heap.other("root['x'] = []; x = root['x']; del root['x']; root['y'] = x")


def test_arrays_are_copied(heap):
    numpy = pytest.importorskip("numpy")
    array = heap.array("a", (3, 4), "i4")
    assert isinstance(array, taiyen.Array)
    array[1] = 5
    heap.other("root['a'][0, 0] = 7; root['a'][1, 1] += 1")
    heap.refresh()
    assert array.tolist() == [[7, 0, 0, 0], [5, 6, 5, 5], [0] * 4]
    copy = numpy.asarray(array)
    copy[:] = 0
    assert array[1, 1] == 6 and numpy.array(array).sum() == 28
    with pytest.raises(BufferError):
        memoryview(array)
    with pytest.raises(BufferError):
        array.numpy()
    with pytest.raises(ZeroDivisionError), heap.transaction():
        array[:] = 1
        array[0] = 1 / 0
    assert array[0, 0] == 7
    heap.other("del root['a']")
    with pytest.raises(taiyen.DeletedError):
        array[0, 0] = 1


def test_what_is_refused(heap, path):
    with pytest.raises(taiyen.UnsupportedError):
        heap.mark("m")
    with pytest.raises(taiyen.UnsupportedError), heap.attempt():
        pass
    with pytest.raises(taiyen.BusyError):
        taiyen.open(path)
    with pytest.raises(taiyen.Error):
        heap.root["big"] = "x" * (3 << 20)
    heap.root["n"] = 1
    heap.other("assert root.get('big') is None; root['m'] = 2")
    for wrong in (dict(kind="snapshot"), dict(readonly=True), dict(follow=True)):
        with pytest.raises(ValueError):
            taiyen.open(path.with_name("new"), shared=True, **wrong)


def test_a_wait_hears_signals(heap):
    def stop(*_):
        raise KeyboardInterrupt

    heap.other.ask("with heap.transaction(): root['n'] = 1; print('in', flush=True); sys.stdin.readline()")
    assert heap.other.answer() == "in"
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            heap.root["n"] = 2
        with pytest.raises(KeyError):  # a reader does not wait
            heap.root["n"]
        assert heap.refresh() is False
    finally:
        signal.signal(signal.SIGALRM, before)
    heap.other.ask("")
    assert heap.other.answer() == "done"
    heap.root["m"] = 1
    assert heap.root["n"] == 1


def test_a_handler_of_a_signal_changes_the_heap_amid_a_wait(heap):
    heap.other.ask("with heap.transaction(): root['n'] = 1; print('in', flush=True); sys.stdin.readline()")
    assert heap.other.answer() == "in"

    def change(*_):
        heap.other.ask("")
        heap.root["in the handler"] = 1

    before = signal.signal(signal.SIGALRM, change)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        heap.root["after it"] = 2
    finally:
        signal.signal(signal.SIGALRM, before)
    assert heap.other.answer() == "done"
    assert list(heap.root) == ["n", "in the handler", "after it"]


def test_a_reader_does_not_wait_for_a_transaction_of_its_process(heap):
    """The transaction waits for the reader, while another process commits all the time."""
    heap.root.update(n=0, stop=False)
    heap.other.ask("exec('while not root[\"stop\"]:\\n with heap.transaction(wait=False): root[\"o\"] = root.get(\"o\", 0) + 1')")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for n in range(int(30 * EFFORT) or 1):
            reader = pool.submit(lambda: [heap.root["n"] for _ in range(2000)])
            with heap.transaction(wait=False):
                heap.root["n"] += 1
                assert n + 1 in (reader.result(60)[-1], heap.root["n"])
    heap.root["stop"] = True
    assert heap.other.answer() == "done"


def test_statistics_wait_for_no_snapshot(heap):
    """The library's own snapshots wait for the GIL."""
    heap.root["stop"] = False
    heap.other.ask("exec('while not root[\"stop\"]:\\n with heap.transaction(wait=False): root[\"o\"] = [1] * 5000')")
    for _ in range(int(3000 * EFFORT) or 1):
        heap.stats()
    heap.root["stop"] = True
    assert heap.other.answer() == "done"


def test_threads_and_processes_take_turns(heap):
    heap.root.update(a=0, b=0)
    heap.other.ask("for i in range(300): exec('with heap.transaction(): root[\"a\"] += 1; root[\"b\"] -= 1')")
    seen = []
    stop = threading.Event()

    def change():
        for _ in range(100):
            with heap.transaction(wait=False):
                heap.root["a"] += 1
                heap.root["b"] -= 1

    def read():
        last = 0
        while not stop.is_set():
            heap.refresh()
            copied = taiyen.plain(heap.root)  # of one moment, but between the stores of another thread's transaction
            a, b = copied["a"], copied["b"]
            if a + b not in (0, 1) != 0 or a < last:
                seen.append((a, b, last))
            last = a

    reader = threading.Thread(target=read)
    reader.start()
    threads = [threading.Thread(target=change) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert heap.other.answer() == "done"
    stop.set()
    reader.join()
    assert (heap.root["a"], heap.root["b"]) == (600, -600) and seen == []


WRITES = "exec('i = 0\\nwhile not root.get(\"stop\"):\\n root[\"text\"] = str(i % 10) * 50000\\n i += 1')"


def test_each_read_is_of_one_state(heap):
    heap.other.ask(WRITES)
    seen = set()
    while len(seen) < 10:
        text = heap.root.get("text", "")
        assert text == text[:1] * len(text)
        seen.add(text[:1])
    heap.root["stop"] = True
    assert heap.other.answer() == "done"


def test_an_idle_process_keeps_up(heap):
    """It may be the one that writes the log: its memory follows in a thread of the library's, which waits for the GIL."""
    heap.other("for i in range(400): root['text'] = str(i % 10) * 50000")  # 20 MB of records, and nothing is read here
    assert heap.root["text"] == "9" * 50000


def add(path, number):
    """In a worker."""
    heap = taiyen.opened(path) or taiyen.open(path, shared=True, log_bytes=1 << 20)
    with heap.transaction(wait=False):
        heap.root["n"] = heap.root.get("n", 0) + number
        heap.root.setdefault("by", {}).setdefault(os.getpid(), []).append(number)
    return number


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_adds(path, method):
    """They create the heap, too, whichever is first."""
    with concurrent.futures.ProcessPoolExecutor(4, mp_context=multiprocessing.get_context(method)) as pool:
        assert sum(pool.map(add, [path] * 200, range(200))) == sum(range(200))
    with taiyen.open(path, shared=True) as heap:
        assert heap.root["n"] == sum(range(200)) == sum(map(sum, heap.root["by"].values()))
        assert heap.verify() == []


def test_a_forked_child_opens_its_own(heap, path):
    heap.root["n"] = 1
    if not (child := os.fork()):
        code = 1
        try:
            with pytest.raises(taiyen.ForkedError):
                heap.root["n"]
            with taiyen.open(path, shared=True) as own:
                own.root["n"] += 1
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    heap.refresh()
    assert heap.root["n"] == 2


WORKER = """
import random, sys, taiyen
heap = taiyen.open(sys.argv[1], shared=True, log_bytes=1 << 20)
dice = random.Random(int(sys.argv[2]))
root = heap.root
print("open", flush=True)
while True:
    with heap.transaction():
        accounts = root.setdefault("accounts", {str(i): [0] for i in range(20)})
        a, b = dice.sample(sorted(accounts), 2)
        accounts[a][0] -= 1
        accounts[b][0] += 1
        assert sum(one[0] for one in accounts.values()) == 0
        n = root["n"] = root.get("n", 0) + 1
        root.setdefault("log", []).append({"n": n, "a": a, "b": b})
        if len(root["log"]) > 30:
            assert root["log"].pop(0)["n"] == n - 30
    print(n, flush=True)
"""


def test_kills(path):
    seed = int(os.environ.get("TAIYEN_SEED", random.SystemRandom().randrange(10**6)))
    print("TAIYEN_SEED", seed)
    dice = random.Random(seed)

    def start():
        worker = subprocess.Popen([sys.executable, "-c", WORKER, path, str(dice.random())[2:]], stdout=subprocess.PIPE,
                                  text=True)  # fmt: skip
        assert worker.stdout.readline() == "open\n"
        return worker

    workers = [start() for _ in range(4)]
    acknowledged = 0
    for _ in range(int(15 * EFFORT)):
        for _ in range(dice.randrange(20)):
            acknowledged = max(acknowledged, int(dice.choice(workers).stdout.readline()))
        for worker in dice.sample(workers, dice.choice((1, 1, 1, 2, 4))):
            worker.kill()
            reported = worker.stdout.read().split()
            acknowledged = max(acknowledged, *map(int, reported[-2:] if reported else [0]), 0)
            assert worker.wait() == -signal.SIGKILL
            workers[workers.index(worker)] = start()
        with taiyen.open(path, follow=True) as heap:
            assert sum(one[0] for one in heap.root["accounts"].values()) == 0
            assert heap.root["n"] >= acknowledged
            assert [one["n"] for one in heap.root["log"]] == list(range(max(1, heap.root["n"] - 29), heap.root["n"] + 1))
    for worker in workers:
        worker.kill()
        worker.communicate()
    with taiyen.open(path) as heap:
        assert heap.verify() == [] and heap.root["n"] >= acknowledged
