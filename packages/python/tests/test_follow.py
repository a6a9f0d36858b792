"""Goal: a heap that another process writes to can be read meanwhile, one state at a time (PY40). Method: a writer in a process
of its own, which does as its standard input says; readers here, in threads and in pools of processes."""

import concurrent.futures
import multiprocessing
import signal
import subprocess
import sys
import threading

import pytest
import taiyen

WRITER = """
import sys, taiyen
heap = taiyen.open(sys.argv[1], kind=sys.argv[2], log_bytes=1 << 20)
keep = heap.transaction if heap.kind == "transactional" else heap.step
def done():
    if heap.kind == "snapshot":
        heap.snapshot()
done()
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("make "):
        heap.array(line.split()[1], 1000)
    else:
        with keep():
            exec(line, {"root": heap.root, "heap": heap})
    done()
    print("done", flush=True)
heap.close()
"""


class Writer:
    def __init__(self, path, kind):
        self.process = subprocess.Popen([sys.executable, "-c", WRITER, path, kind], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __call__(self, line):
        self.ask(line)
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture(params=["snapshot", "transactional"])
def write(request, path):
    writer = Writer(path, request.param)
    yield writer
    if writer.process.poll() is None:
        writer.end()


def test_a_state_stays_until_it_is_refreshed(write, path):
    write("root['n'] = 1; root['of'] = {'a': list(range(100))}")
    with taiyen.open(path, follow=True) as heap:
        assert heap.readonly and heap.root["n"] == 1
        of, rows = heap.root["of"], heap.root["of"]["a"]
        write("root['n'] = 2; root['of']['a'].append(100); root['new'] = 'x' * 10000")
        assert heap.root["n"] == 1 and rows == list(range(100)) and "new" not in heap.root
        assert heap.refresh() is True
        assert heap.root["n"] == 2 and rows == list(range(101)) and of["a"] is rows and heap.root["new"] == "x" * 10000
        assert heap.refresh() is False
        write("del root['of']")
        assert heap.refresh(wait=30) is True
        with pytest.raises(taiyen.DeletedError):
            len(of)
        with pytest.raises(taiyen.DeniedError):
            heap.root["n"] = 3
        assert heap.verify() == []
        write("root['n'] = 4")
        write.end()
        assert heap.refresh() and heap.root["n"] == 4
    with pytest.raises(ValueError):
        taiyen.open(path, follow=True, readonly=True)


def test_an_iteration_is_of_one_state(write, path):
    write("root['d'] = {str(i): i for i in range(100)}; root['l'] = list(range(100))")
    with taiyen.open(path, follow=True) as heap:
        for over in (heap.root["d"], heap.root["l"], heap.root["d"].items()):
            iteration = iter(over)
            next(iteration)
            write("root['d']['7'] = -1; root['l'][50] += 1")
            next(iteration)
            assert heap.refresh()
            with pytest.raises(RuntimeError, match="refreshed"):
                next(iteration)
        assert heap.root["d"]["7"] == -1 and heap.root["l"][50] == 53


def test_views_are_of_one_state(write, path):
    numpy = pytest.importorskip("numpy")
    write("make a")
    write("heap.array('a')[:] = 1")
    with taiyen.open(path, follow=True) as heap:
        shown = heap.array("a")
        write("root['n'] = 1")
        with pytest.raises(taiyen.LiveViewsError):
            heap.refresh()
        assert shown.sum() == 1000 and numpy.all(shown == 1)
        del shown
        assert heap.refresh() and heap.root["n"] == 1


def test_threads_go_on_while_one_waits(write, path):
    write("root['n'] = 0")
    with taiyen.open(path, follow=True) as heap:
        seen = []

        def wait():
            seen.append(heap.refresh(wait=60))

        thread = threading.Thread(target=wait)
        thread.start()
        for _ in range(1000):
            assert heap.root["n"] in (0, 1)
        write("root['n'] = 1")
        thread.join()
        assert seen == [True] and heap.root["n"] == 1


def test_a_wait_hears_signals(write, path):
    def stop(*_):
        raise KeyboardInterrupt

    write("root['n'] = 0")
    with taiyen.open(path, follow=True) as heap:
        before = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                heap.refresh(wait=600)
        finally:
            signal.signal(signal.SIGALRM, before)
        write("root['n'] = 1")
        assert heap.refresh() and heap.root["n"] == 1


def look(path, number):
    """In a worker: opens the heap once, and refreshes it."""
    heap = taiyen.opened(path) or taiyen.open(path, follow=True)
    heap.refresh()
    assert heap.root["n"] >= number and sum(heap.root["parts"]) == heap.root["n"]
    return heap.root["n"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_follows(write, path, method):
    write("root['n'] = 0; root['parts'] = [0] * 50")
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
        for number in range(1, 30):
            write(f"root['n'] = {number}; root['parts'][{number}] = 1")
            for seen in [pool.submit(look, path, number) for _ in range(4)]:
                assert seen.result() == number
