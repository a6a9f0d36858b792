"""Goal: whatever moment a program is killed at, the heap holds what was acknowledged, and each change whole. Method: a
program that prints what it has committed is killed at random moments, again and again; the next one proves the content.
Steps of undo are killed after a snapshot of their half."""

import os
import random
import signal
import subprocess
import sys

import pytest
import taiyen
from conftest import EFFORT

PROGRAM = """
import sys, taiyen
heap = taiyen.open(sys.argv[1], kind=sys.argv[2], log_bytes=1 << 20)
root = heap.root
root.setdefault("rows", {})
root.setdefault("n", 0)
root.setdefault("queue", [])
print("open", flush=True)
while True:
    n = root["n"] + 1
    if sys.argv[2] == "transactional":
        with heap.transaction():
            change(root, n)
    else:
        change(root, n)
        heap.snapshot()
    print(n, flush=True)
"""
CHANGE = """
def change(root, n):
    root["n"] = n
    root["rows"][f"row number {n}"] = {"n": n, "squares": [n * n, (n, str(n) * 5)]}
    if n > 20:
        del root["rows"][f"row number {n - 20}"]
    root["queue"].append([n])
    if len(root["queue"]) > 10:
        root["queue"].pop(0)
"""


def expected(n):
    rows = {f"row number {i}": {"n": i, "squares": [i * i, (i, str(i) * 5)]} for i in range(max(1, n - 19), n + 1)}
    return {"n": n, "rows": rows, "queue": [[i] for i in range(max(1, n - 9), n + 1)]}


@pytest.mark.parametrize("kind", ["transactional", "snapshot"])
def test_kill(path, kind):
    seed = int(os.environ.get("TAIYEN_SEED", random.SystemRandom().randrange(10**6)))
    print("TAIYEN_SEED", seed)
    dice = random.Random(seed)
    acknowledged = 0
    with taiyen.open(path, kind=kind, log_bytes=1 << 20):
        pass  # so that there are values to look at, whenever the first program is killed
    for _ in range(int(20 * EFFORT)):
        program = subprocess.Popen([sys.executable, "-c", CHANGE + PROGRAM, path, kind], stdout=subprocess.PIPE)
        reported = []
        for _ in range(1 + dice.randrange(40)):
            reported.append(program.stdout.readline())
        program.send_signal(signal.SIGKILL)
        reported += program.stdout.readlines()
        program.wait()
        numbers = [int(line) for line in reported if line.strip().isdigit() and line.endswith(b"\n")]
        acknowledged = max([acknowledged, *numbers])
        with taiyen.open(path, readonly="copy") as heap:
            n = heap.root.get("n", 0)
            assert n >= acknowledged
            if "queue" in heap.root:
                assert taiyen.plain(heap.root) == expected(n)
            assert heap.verify() == []
    assert acknowledged > 0


@pytest.mark.parametrize("kind", ["snapshot", "archive"])
@pytest.mark.parametrize("saver", ["itself", "a thread"])
def test_kill_in_a_step(path, kind, saver):
    """PY17. A snapshot that was taken in a step has its half. The heap that was left so could not be changed any more:
    a step was open, that no call of Python ends."""
    program = """
import os, sys, threading, numpy, taiyen
heap = taiyen.open(sys.argv[1], kind=sys.argv[2])
heap.root["l"], heap.root["d"] = [1], {"gone": [1, 2]}
heap.array("a", 5)[:] = 1
with heap.step("whole"):
    heap.root["l"].append(2)
with heap.step("half"):
    heap.root["l"].append(3)
    heap.root["new"] = {"made": ["in", "vain"]}
    del heap.root["d"]["gone"]
    heap.root["a"].record()
    heap.array("a")[:] = 2
    if sys.argv[3] == "itself":
        heap.snapshot()
    else:
        thread = threading.Thread(target=heap.snapshot)
        thread.start()
        thread.join()
    heap.root["l"].append(4)
    os.kill(os.getpid(), 9)
"""
    killed = subprocess.run([sys.executable, "-c", program, path, kind, saver])
    assert killed.returncode == -signal.SIGKILL
    for _ in range(2):  # the second time, it was closed in order
        with taiyen.open(path) as heap:
            assert heap.root["l"] == [1, 2] and heap.verify() == []
            assert heap.root["d"] == {"gone": [1, 2]} and "new" not in heap.root
            assert heap.root["a"].tolist() == [1] * 5
            assert [step.label for step in heap.history()] == ["whole"]
            heap.undo()
            assert heap.root["l"] == [1]
            heap.redo()
            assert heap.root["l"] == [1, 2]
    with taiyen.open(path) as heap:
        heap.root["l"].append(5)
        with heap.step("more"):
            heap.root["more"] = 1
        assert heap.collect() == 0 and heap.root["l"] == [1, 2, 5] and heap.verify() == []
