#!/usr/bin/env python3
"""Goal: every planted misuse is reported under the drop-in with the block, its size and where it was allocated; a program
without one, and real ones, run with all checks and are silent.
Method: run packages/malloc/tests/planted.c with LD_PRELOAD and TAIYEN_MALLOC, and compare what it says.

    check_planted.py --library LIBRARY --program PROGRAM
"""

import argparse
import os
import re
import signal
import subprocess
import sys

ALLOCATED = r"\n  allocated by thread \d+:\n(    #\d+ .*\n)*?    #\d+ 0x[0-9a-f]+ allocate_here\+"
FREED = r"(.|\n)*\n  freed by thread \d+:\n(    #\d+ .*\n)*?    #\d+ 0x[0-9a-f]+ free_here\+"

# name, TAIYEN_MALLOC, how it ends, what is said; BLOCK stands for the block's address.
CASES = [
    ("after", "bounds,sites", signal.SIGABRT, "a write at 0x[0-9a-f]+, 1 byte after the end of the block at BLOCK of 123 bytes, noticed by its free" + ALLOCATED),
    ("before", "bounds,sites", signal.SIGABRT, "a write at 0x[0-9a-f]+, 1 byte before the block at BLOCK of 123 bytes, noticed by its free" + ALLOCATED),
    ("before", "guard,sites", signal.SIGABRT, "a write at 0x[0-9a-f]+, 1 byte before the block at BLOCK of 123 bytes, noticed by its free" + ALLOCATED),
    ("twice", "sites", signal.SIGABRT, "free of BLOCK: the block at BLOCK of 123 bytes is freed already" + ALLOCATED + FREED),
    ("interior", "sites", signal.SIGABRT, "free of 0x[0-9a-f]+: it is no block, it lies 16 bytes from the start of the block at BLOCK of 123 bytes" + ALLOCATED),
    ("wild", "sites", signal.SIGABRT, "taiyen-malloc: free: cannot free 0x[0-9a-f]+: the address lies in no heap"),
    ("after_free", "freed,sites", signal.SIGABRT, "a write at 0x[0-9a-f]+ after the free, at byte 5 of the block at BLOCK of 123 bytes" + ALLOCATED + FREED),
    ("read_after_free", "guard,sites", signal.SIGSEGV, "a read at 0x[0-9a-f]+ after the free, at byte 5 of the block at BLOCK of 123 bytes" + ALLOCATED + FREED),
    ("guard", "guard,sites", signal.SIGSEGV, "a read at 0x[0-9a-f]+, 6 bytes after the end of the block at BLOCK of 123 bytes" + ALLOCATED),
    ("sampled", "sample=1", signal.SIGSEGV, "a read at 0x[0-9a-f]+, 1 byte after the end of the block at BLOCK of 5008 bytes" + ALLOCATED),
    ("leak", "leaks", 0, "4 blocks of 4000 bytes in all were not freed, such as the block at 0x[0-9a-f]+ of 1000 bytes\n  allocated by several threads:\n(    #.*\n)*?    #\\d+ 0x[0-9a-f]+ allocate_here\\+"),
    ("after", "bounds", signal.SIGABRT, "after the end of the block at BLOCK of 123 bytes, noticed by its free\n  allocated by thread \\d+\n"),
    ("nothing", "bounds,freed,sites", 0, None),
    ("nothing", "guard,sites,quarantine=64M", 0, None),
    ("nothing", "sample=1", 0, None),
    ("nothing", "bonds,quarantine=4X,sample=0,,bounds", 0, '"bonds" is ignored; known are bounds(.|\n)*"quarantine=4X" is ignored(.|\n)*"sample=0" is ignored'),
]

REAL = [
    ("bounds,freed,sites", ["git", "--version"]),
    ("bounds,freed,leaks", ["sh", "-c", "seq 1000 | sort -R | sort -n | tail -1"]),
    ("bounds,freed", [sys.executable, "-c", "import json; print(len(json.dumps([{'a': i} for i in range(20000)])))"]),
    ("sample=2", [sys.executable, "-c", "import json; print(len(json.dumps([{'a': i} for i in range(200000)])))"]),
]


def run(library, settings, command):
    environment = dict(os.environ, LD_PRELOAD=library, TAIYEN_MALLOC=settings)
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=300)


def check_case(arguments, name, settings, end, words):
    result = run(arguments.library, settings, [arguments.program, name])
    said = result.stderr
    planted = re.search(r"^planted (0x[0-9a-f]+)$", said, re.MULTILINE)
    wanted = -end.value if isinstance(end, signal.Signals) else end
    if planted is None or result.returncode != wanted:
        return f"ended with {result.returncode}, expected {wanted}"
    said = said.replace(planted.group(0) + "\n", "")
    if words is None:
        return "said something" if said else None
    return None if re.search(words.replace("BLOCK", planted.group(1)), said) else "did not say what it should"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    problems = 0
    for name, settings, end, words in CASES:
        problem = check_case(arguments, name, settings, end, words)
        if problem:
            problems += 1
            print(f"{name} with {settings}: {problem}:\n{run(arguments.library, settings, [arguments.program, name]).stderr}")
    for settings, command in REAL:
        result = run(arguments.library, settings, command)
        plain = subprocess.run(command, text=True, capture_output=True, check=False)
        wrong = [line for line in result.stderr.splitlines() if line.startswith("taiyen") and "not freed" not in line]
        if result.returncode != 0 or wrong or (result.stdout != plain.stdout):
            problems += 1
            print(f"{command[0]} with {settings}: ended with {result.returncode}:\n{result.stderr[:3000]}")
    print(f"{len(CASES)} planted, {len(REAL)} programs: {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
