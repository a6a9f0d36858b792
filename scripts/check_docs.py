#!/usr/bin/env python3
"""Compiles every C and C++ code block of README.md and docs/ against the public headers, and runs the whole programs.

    scripts/check_docs.py [--library LIBTAIYEN_A]
    scripts/check_docs.py --self-test

A block fenced as ```c (C11) or ```cpp (C++17) is one of two things:
  - with an #include line it is a whole file; with a main it is also linked with the library, where one is given, and
    run. The programs of one document share a folder and run in order. The next block behind a program, if it is
    fenced as ```text, is what the program must print.
  - else it is a fragment: statements of a function that returns int. What the fragment takes for granted stands in an
    HTML comment right before the block, which readers don't see:
        <!-- given: struct city { double lat, lon; }; -->
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COMPILERS = {"c": ["gcc", "-x", "c", "-std=c11"], "cpp": ["g++", "-x", "c++", "-std=c++17"]}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused"]
FENCE = re.compile(r"^```(\w*)\s*$")
GIVEN = re.compile(r"<!--\s*given:(.*?)-->\s*$", re.DOTALL)
PROGRAM_SECONDS = 60

FRAGMENT = """#include <stdio.h>
#include <string.h>
#include <taiyen/taiyen.h>
static int fail(const char *text) { fprintf(stderr, "%s\\n", text); return 1; }
@given@
int fragment(void);
int fragment(void) {
#line @line@ "@path@"
@text@
    (void)fail;
    return 0;
}
"""


class Block:
    def __init__(self, path, line, language, text, given):
        self.path, self.line, self.language, self.text, self.given = path, line, language, text, given
        self.expected = None

    def is_file(self):
        return re.search(r"^\s*#\s*include", self.text, re.MULTILINE) is not None

    def is_program(self):
        return self.is_file() and re.search(r"\bint main\(", self.text) is not None

    def source(self):
        if self.is_file():
            return f'#line {self.line} "{self.path}"\n{self.text}'
        values = {"given": self.given, "line": str(self.line), "path": self.path, "text": self.text}
        return re.sub(r"@(\w+)@", lambda match: values[match.group(1)], FRAGMENT)


def blocks_of(path, markdown):
    """The C and C++ blocks of a document, in order."""
    blocks = []
    lines = markdown.split("\n")
    previous = None
    start = None
    prose_start = 0
    for number, line in enumerate(lines):
        match = FENCE.match(line)
        if not match:
            continue
        if start is None:
            start, language = number, match.group(1)
            continue
        text = "\n".join(lines[start + 1 : number])
        prose = "\n".join(lines[prose_start:start])
        if language in COMPILERS:
            given = GIVEN.search(prose)
            previous = Block(path, start + 2, language, text, given.group(1) if given else "")
            blocks.append(previous)
        else:
            if language == "text" and previous:
                previous.expected = text
            previous = None
        prose_start = number + 1
        start = None
    if start is not None:
        raise ValueError(f"{path}:{start + 1}: code block has no end")
    return blocks


def compile_block(block, folder, library):
    """Compiles, and links a whole program where there is a library. Returns (program or None, problem or None)."""
    command = COMPILERS[block.language] + WARNINGS + ["-I" + os.path.join(ROOT, "include"), "-"]
    program = None
    if library and block.is_program():
        program = os.path.join(folder, "program")
        command += ["-o", program, "-x", "none", library, "-pthread"]
    else:
        command += ["-fsyntax-only"]
    result = subprocess.run(command, input=block.source(), text=True, capture_output=True, check=False)
    return program, result.stderr if result.returncode else None


def run_program(block, program, folder):
    result = subprocess.run(
        [program], cwd=folder, text=True, capture_output=True, timeout=PROGRAM_SECONDS, stdin=subprocess.DEVNULL
    )
    if result.returncode:
        return f"exit code {result.returncode}\n{result.stdout}{result.stderr}"
    if block.expected is not None and result.stdout.strip() != block.expected.strip():
        return f"printed\n{result.stdout}instead of\n{block.expected}"
    return None


def check_document(path, markdown, library):
    """Problems of a document, the number of its blocks, and of the programs that ran."""
    problems = []
    ran = 0
    blocks = blocks_of(path, markdown)
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks:
            program, problem = compile_block(block, folder, library)
            if program and not problem:
                ran += 1
                problem = run_program(block, program, folder)
            if problem:
                problems.append(f"{block.path}:{block.line}: {problem}")
    return problems, len(blocks), ran


def self_test():
    """A document with one block of each kind that must be refused, and one with what must pass."""
    good = (
        "<!-- given: struct s { int a; }; -->\n```c\nstruct s s = {1};\n```\n```cpp\nauto x = ty_version();\n```\n"
        '```c\n#include <stdio.h>\nint main(void) { return puts("hi") < 0; }\n```\n'
    )
    bad = (
        "```c\nty_no_such_call();\n```\n",
        "```cpp\nint x = nullptr;\n```\n",
        "```c\n#include <taiyen/no_such.h>\n```\n",
        "<!-- given: struct s { int a; }; -->\nand more\n```c\nstruct s s = {1};\n```\n",
    )
    failed = [problem for problem in check_document("good.md", good, None)[0]]
    failed += [f"passed, but should not:\n{text}" for text in bad if not check_document("bad.md", text, None)[0]]
    for problem in failed:
        print("self-test:", problem)
    print(f"{len(bad)} planted errors, {len(failed)} problems")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", help="libtaiyen.a: link and run whole programs")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    os.chdir(ROOT)
    library = os.path.abspath(arguments.library) if arguments.library else None
    total = total_ran = 0
    problems = []
    for path in ["README.md"] + sorted(glob.glob("docs/**/*.md", recursive=True)):
        with open(path, encoding="utf-8") as document:
            found, count, ran = check_document(path, document.read(), library)
        problems += found
        total += count
        total_ran += ran
    for problem in problems:
        print(problem)
    print(f"{total} code blocks compiled, {total_ran} programs run: {len(problems)} problems")
    return 1 if problems or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
