"""PY34. Code that runs in the middle of an operation: see collectors.py.

The story: CPython 3.11 collects in allocations. A finaliser that stored into the heap while a proxy was made freed what the proxy was to
stand for, and the process ended with it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import taiyen
from collectors import TRIED

HERE = Path(__file__).parent


@pytest.mark.parametrize(("kind", "action"), TRIED)
def test_code_runs_in_the_middle_of_operations(kind, action, tmp_path):
    done = subprocess.run([sys.executable, HERE / "collectors.py", kind, action, tmp_path], capture_output=True, text=True,
                          timeout=500, env=dict(os.environ, PYTHONPATH=str(Path(taiyen.__file__).parents[1])))  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_finaliser_replaces_what_is_read(tmp_path):
    """With the collector's own settings, as programs have them."""
    program = """
import gc, sys, taiyen
heap = taiyen.open(sys.argv[1] + "/a.ty")
root = heap.root
root["status"] = {"seen": 0}
class Connection:
    def __init__(self):
        self.handler = self.close
    def close(self):
        pass
    def __del__(self):
        root["status"] = {"seen": 1}
rows = []
for i in range(20000):
    Connection()
    rows.append([i])
    root["status"]
rows.clear()
gc.collect()
del Connection.__del__
assert heap.verify() == []
heap.close()
"""
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True, timeout=300)


@pytest.mark.parametrize("kind", ["transactional", "snapshot"])
def test_a_finaliser_begins_one_as_another_ends(kind, tmp_path):
    """PY35. Whose a transaction is was forgotten by both, and the second one used what the first had freed."""
    program = """
import gc, sys, taiyen
heap = taiyen.open(sys.argv[1] + "/a.ty", kind=sys.argv[2], log_bytes=1 << 20)
begin = heap.transaction if heap.kind == "transactional" else heap.step
class Ring:
    def __init__(self):
        self.me = self
    def __del__(self):
        try:
            with begin():
                heap["by the finaliser"] = allocations
        except taiyen.Error: # the other one has not ended yet
            pass
def try_it():
    with begin():
        heap["it"] = allocations
        gc.set_threshold(gc.get_count()[0] + allocations)
    gc.set_threshold(0)
for allocations in range(20):
    gc.set_threshold(0)
    Ring()
    try_it()
    gc.collect()
del Ring.__del__
assert heap.verify() == []
heap.close()
"""
    environment = dict(os.environ, PYTHONMALLOC="debug", PYTHONPATH=str(Path(taiyen.__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", program, tmp_path, kind], capture_output=True, text=True, timeout=100,
                          env=environment)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
