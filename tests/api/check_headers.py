#!/usr/bin/env python3
"""Goal: each public header can be included alone, first, and twice, without any warning: those of
C by C11 and C++17, those of C++ by C++17 and 20 (without exceptions; with them the tests are compiled).
Method: compile a file that includes just that header, for each header and each language.

    tests/api/check_headers.py --cc CC --cxx CXX
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDES = [ROOT / "include", *sorted((ROOT / "packages").glob("**/include"))]
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror", "-fsyntax-only"]
# A C function without prototype is an error; a C++ one that loses its linkage too.
LANGUAGES = {
    "c11": [".h", "-x", "c", "-std=c11", "-Wstrict-prototypes"],
    "c++17": [".h .hpp", "-x", "c++", "-std=c++17"],
    "c++20 without exceptions": [".hpp", "-x", "c++", "-std=c++20", "-fno-exceptions", "-fno-rtti"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    arguments = parser.parse_args()

    headers = sorted(path for folder in INCLUDES for path in (folder / "taiyen").iterdir() if path.suffix in (".h", ".hpp"))
    problems = compiled = 0
    for header in headers:
        for name, (suffixes, *flags) in LANGUAGES.items():
            if header.suffix not in suffixes.split():
                continue
            text = f"#include <taiyen/{header.name}>\n#include <taiyen/{header.name}>\nint used;\n"
            compiler = arguments.cc if name == "c11" else arguments.cxx
            command = [compiler, *flags, *FLAGS, *(f"-I{folder}" for folder in INCLUDES), "-"]
            result = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
            compiled += 1
            if result.returncode:
                problems += 1
                print(f"{header.name} as {name}:\n{result.stderr}")
    print(f"{len(headers)} headers, {compiled} compiled alone: {problems} problems")
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
