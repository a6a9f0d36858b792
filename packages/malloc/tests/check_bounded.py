#!/usr/bin/env python3
"""Goal: under the drop-in a program has nine tenths of what glibc's malloc leaves it of a limited address space, can lock
its memory, and leaves a core file of about the size.
Method: run packages/malloc/tests/bounded.c with and without LD_PRELOAD, and compare.

    check_bounded.py --library LIBRARY --program PROGRAM     exit 77 if nothing could be tried
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

MB = 1 << 20
SHARE = 0.9
CORE_MORE = 8 * MB  # beyond what glibc's has


def run(program, words, library=None, folder=None, **limits):
    def limit():
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))

    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if library:
        environment["LD_PRELOAD"] = library
    return subprocess.run([program, *map(str, words)], env=environment, preexec_fn=limit, cwd=folder, text=True,
                          capture_output=True, check=False, timeout=300)


def bytes_left(arguments, words, library, address_space):
    result = run(arguments.program, words, library, AS=address_space, CORE=0)
    return int(result.stdout) if result.returncode == 0 else 0


def check_address_space(arguments):
    for limit in (100 * MB, 300 * MB, 1000 * MB):
        for words in (("fill", 1000), ("fill", 100000), ("fill", 3000000), ("others", limit // 3)):
            ours = bytes_left(arguments, words, arguments.library, limit)
            theirs = bytes_left(arguments, words, None, limit)
            if theirs == 0:
                return f"glibc had nothing: {words} in {limit}"
            print(f"{words} in {limit // MB} MB: {ours // MB} of {theirs // MB} MB")
            if ours < SHARE * theirs:
                return f"{words} in {limit} bytes of address space: {ours} bytes, with glibc {theirs}"
    return None


def check_locked(arguments):
    for words in (("locked", 0), ("locked", 0, "future"), ("locked", 65534), ("locked", 65534, "future")):
        theirs = run(arguments.program, words)
        if theirs.returncode != 0:
            print(f"{words}: not here")
            continue
        ours = run(arguments.program, words, arguments.library)
        if ours.returncode != 0:
            return f"{words}: ended with {ours.returncode}: {ours.stderr}"
    return None


def core_of(arguments, library, folder):
    run(arguments.program, ["core"], library, folder, CORE=resource.RLIM_INFINITY)
    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("core")]
    if not files:
        return None
    status = os.stat(files[0])
    with open(files[0], "rb") as file:
        content = file.read()
    os.unlink(files[0])
    blocks = sum(f"live-{chr(97 + i % 26)}{i}-block\0".encode() in content for i in range(40))
    return status.st_size, status.st_blocks * 512, blocks, content.count(b"freed-x-block\0")


def check_core(arguments):
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
        if not file.read().startswith("core"):
            print("core files go elsewhere: not tried")
            return None
    with tempfile.TemporaryDirectory() as folder:
        theirs = core_of(arguments, None, folder)
        ours = core_of(arguments, arguments.library, folder)
    if theirs is None:
        print("no core files here: not tried")
        return None
    print(f"core files (bytes, bytes on disk, live blocks, freed blocks): {ours}, with glibc {theirs}")
    if ours is None or ours[2] != 40:
        return f"live blocks are not in the core file: {ours}"
    if ours[3] != 0:
        return f"memory that was freed and given back is in the core file: {ours}"
    if ours[1] > theirs[1] + CORE_MORE:
        return f"the core file takes {ours[1]} bytes, with glibc {theirs[1]}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    arguments.library, arguments.program = os.path.abspath(arguments.library), os.path.abspath(arguments.program)
    for check in (check_address_space, check_locked, check_core):
        problem = check(arguments)
        if problem:
            print(problem)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
