"""Goal: a heap whose file was damaged, or made to do harm, ends no program that verifies it first. Method: bytes of a closed
heap's pages are changed, seeded; each such file is opened and verified in a process of its own (VA14)."""

import os
import random
import subprocess
import sys

import numpy
import taiyen

PROGRAM = """
import sys, taiyen
@taiyen.record
class Point:
    x: float
    y: float
try:
    heap = taiyen.open(sys.argv[1], create=False)
except taiyen.Error as error:
    print("refused:", error)
else:
    print("reported:" if heap.verify() else "nothing")
    heap.discard()
"""


@taiyen.record
class Point:
    x: float
    y: float


def fill(root):
    root["dicts"] = {str(i): {"a": i, "b": [i, "x" * i], "c": (1, 2.5, "z")} for i in range(50)}
    root["table"] = {i: "y" * 40 for i in range(300)}
    root["list"], root["set"] = list(range(500)), {("a tuple", i) for i in range(100)}
    root["records"], root["array"] = [Point(i, 2) for i in range(50)], numpy.arange(100.0)
    root["big"] = [2**200, -(2**70), 1 + 2j, b"bytes" * 20, "text" * 20]


def run(path):
    return subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, timeout=60)


def test_verify_of_changed_bytes(path, tmp_path):
    with taiyen.open(path) as heap:
        fill(heap.root)
    assert run(path).stdout == "nothing\n"
    seed = int(os.environ.get("TAIYEN_SEED", random.SystemRandom().randrange(10**6)))
    print("TAIYEN_SEED", seed)
    dice = random.Random(seed)
    with open(path, "rb") as file:
        whole = file.read(8 << 20)
    places = [i for i in range(2 << 20, len(whole)) if whole[i]]
    reported = 0
    for _ in range(int(os.environ.get("TAIYEN_FLIPS", "25"))):
        damaged = tmp_path / "damaged.ty"
        for file in tmp_path.glob("heap.ty*"):
            subprocess.run(["cp", "--sparse=always", file, str(damaged) + file.name.removeprefix("heap.ty")], check=True)
        place, byte = dice.choice(places), dice.randrange(256)
        with open(damaged, "r+b") as file:
            file.seek(place)
            file.write(bytes([byte]))
        result = run(damaged)
        assert result.returncode == 0, (place, whole[place], byte, result)
        reported += "reported" in result.stdout or "refused" in result.stdout
        for file in tmp_path.glob("damaged.ty*"):
            file.unlink()
    assert reported > 0
