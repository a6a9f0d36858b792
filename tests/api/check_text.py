#!/usr/bin/env python3
"""Checks how much text the static library adds to a program.

    check_text.py PROGRAM PROGRAM_WITHOUT LIMIT_BYTES     exit 1 if it is more

Text is what `size` calls so: code, constants and unwind tables. Both programs run, too: what is measured works.
"""

import subprocess
import sys


def text_bytes(program):
    lines = subprocess.run(["size", program], check=True, capture_output=True, text=True).stdout.splitlines()
    return int(lines[1].split()[0])


def main():
    program, without, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for each in (program, without):
        subprocess.run([each], check=True)
    added = text_bytes(program) - text_bytes(without)
    print(f"the library adds {added} bytes of text; the limit is {limit}")
    return 0 if 0 < added <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
