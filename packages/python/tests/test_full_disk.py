"""Goal: where the disk is full, there is an exception that says what to do; nothing that was durable is lost, nor what is in
memory, and the heap goes on when there is room. No signal, for each kind of heap. Method: a program of its own, whose stores
go on until they are refused: on a small file system, where one can be mounted, and with a limit of files' sizes
(RLIMIT_FSIZE)."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import os, resource, sys
import taiyen

path, kind, how, small = sys.argv[1:]
free = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

@taiyen.record
class Point:
    x: float
    name: taiyen.text(56)

def limit(bytes):
    if not small:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, free))
    elif bytes == free:  # it has no other files: it becomes larger
        assert os.system(f"mount -o remount,size=256m '{os.path.dirname(path)}'") == 0

def store(heap, number):
    root = heap.root
    if how == "dicts":
        root["rows"].append({"number": number, "text": "x" * 300, "own": [number]})
    elif how == "records":
        root["points"].append(Point(number, "a point"))
    else:
        root[f"array {number}"] = bytearray(10_000)

def sizes(heap):
    return len(heap.root), len(heap.root["rows"]), len(heap.root["points"])

heap = taiyen.open(path, kind=kind, limit=1 << 30, log_bytes=1 << 20)
heap.root["rows"], heap.root["points"] = [], taiyen.records(Point)
heap.root["kept"] = list(range(1000))
heap.snapshot()
limit(6 << 20)
full = None
number = 0
while number < 100_000 and full is None:
    before = sizes(heap)
    try:
        if kind == "transactional":
            with heap.transaction(wait=False):
                for _ in range(100):
                    store(heap, number)
                    number += 1
        else:
            for _ in range(100):
                store(heap, number)
                number += 1
            if number % 2000 == 0:
                heap.snapshot()
    except taiyen.Error as error:
        full = error
print(type(full).__name__, "|", isinstance(full, OSError), "|", full.remedy, "|", number, flush=True)
assert isinstance(full, (taiyen.DiskFullError, taiyen.HeapFullError)), full
if kind == "transactional":
    assert sizes(heap) == before, (sizes(heap), before)
assert heap.root["kept"] == list(range(1000)) and heap.verify() == []
for _ in range(3):  # it can be tried again, and is refused again or not; nothing changes by that
    before = sizes(heap)
    try:
        store(heap, number)
        number += 1
    except taiyen.Error:
        assert sizes(heap) == before
    try:
        heap.snapshot()
    except taiyen.DiskFullError as error:
        assert error.remedy
try:
    heap.close()
except taiyen.DiskFullError as error:
    assert error.remedy and not heap.closed
limit(free)
if not heap.closed:
    heap.snapshot()
    store(heap, number)
    rows = sizes(heap)
    heap.close()
else:
    rows = None
print("sizes", rows, flush=True)
with taiyen.open(path) as heap:
    assert heap.root["kept"] == list(range(1000)) and heap.verify() == []
    assert rows is None or sizes(heap) == rows, (sizes(heap), rows)
    store(heap, number + 1)
"""


def can_mount():
    if not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0


def check(kind, how, folder, before=(), small=""):
    done = subprocess.run([*before, sys.executable, "-c", PROGRAM, f"{folder}/heap.ty", kind, how, small],
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DiskFullError | True | " in done.stdout, done.stdout


@pytest.mark.parametrize("how", ["dicts", "records", "arrays"])
@pytest.mark.parametrize("kind", ["snapshot", "transactional", "archive"])
def test_small_file_system(tmp_path, kind, how):
    if not can_mount():
        pytest.skip("no file system can be mounted here")
    mount = f'mount -t tmpfs -o size=8m tmpfs "{tmp_path}" && exec "$@"'
    check(kind, how, tmp_path, ["unshare", "-Urm", "sh", "-c", mount, "sh"], "small")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("how", ["dicts", "records", "arrays"])
@pytest.mark.parametrize("kind", ["snapshot", "transactional"])  # an archive's file has its size from the beginning
def test_limit_of_files(tmp_path, kind, how):
    check(kind, how, tmp_path)
