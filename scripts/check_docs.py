#!/usr/bin/env python3
"""Compiles every C and C++ code block of README.md and docs/ against the public headers, runs the whole programs, and
checks that the design pages name what there is.

    scripts/check_docs.py [--library LIBTAIYEN_A]
    scripts/check_docs.py --self-test

A block fenced as ```c (C11) or ```cpp (C++17) is one of two things:
  - with an #include line it is a whole file; with a main it is also linked with the library, where one is given (if it
    includes the pack library's headers, with that one beside it, too), and run. The programs of one document share a
    folder and run in order. The next block after a program, if it is fenced as ```text, is what the program must print.
  - else it is a fragment: statements of a function that returns int. What the fragment takes for granted stands in an
    HTML comment right before the block, which readers don't see:
        <!-- given: struct city { double lat, lon; }; -->

In docs/design/*.md:
  - name.cpp, name.hpp and name.h are files of the repository; a name that several folders of src or include have is
    written with its folder, opening/open.cpp;
  - each file of src stands in a table of a page that begins with "| part | files |" or "| subject | files |", or its
    header or its code does (but not façades and entry headers); a row's files lie in the part, its folder;
  - in a diagram, words_with_underscores before a file's name are words of that file's code;
  - `name()`, and a word_with_underscores between backticks or in a diagram, is a word of its code, not of comments alone;
  - an invariant's entry begins with "- I3: ". It names the files that keep it, each of which names the number in a
    comment, and after "Test:" tests, which exist;
  - docs/design/README.md has a row "| I3 | what it says | [page](page) |" for each entry, and no other;
  - each invariant that a comment in src, include or packages, or a fault site (tests/faults), names is one of them; and
    each of them is named in such a comment;
  - where the code or a page names a page's section (os.md, "Write faults"), there is one;
  - no word reports an experiment ("medians", "interleaved", "measured"): that is for docs/decisions.
In CONTRIBUTING.md: files and functions, likewise.
In comments of code: files that are named there exist (and are one, or lie beside it), and so do names with underscores,
in `backticks`, or before (). A .cpp file of src without a header of its name begins with a comment.
In docs/decisions/*.md: a line "Date: 2026-11-26", and the headings that each page has; README.md there leads to each.
In all of docs/: links lead to files.
"""

import argparse
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COMPILERS = {"c": ["gcc", "-x", "c", "-std=c11"], "cpp": ["g++", "-x", "c++", "-std=c++17"]}
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused"]
INCLUDES = ["-I" + folder for folder in glob.glob(os.path.join(ROOT, "include")) +
            glob.glob(os.path.join(ROOT, "packages", "**", "include"), recursive=True)]
FENCE = re.compile(r"^```(\w*)\s*$")
GIVEN = re.compile(r"<!--\s*given:(.*?)-->\s*$", re.DOTALL)
PACK_HEADER = re.compile(r"^\s*#\s*include\s*<taiyen/(?:pack|types)\.h", re.MULTILINE)
PROGRAM_SECONDS = 60

DESIGN = os.path.join("docs", "design")
FAULTS = os.path.join("tests", "faults", "sites.txt")
TEST_CASE = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
DECISIONS = os.path.join("docs", "decisions")
CODE_FOLDERS = ("src", "include", "packages", "tests", "bench", "examples", "cli", "fuzz")
SOURCES = ("src/", "include/", "packages/", "cli/", "tests/simulated_disk/")  # where invariants are kept
FILE_NAME = re.compile(r"(?<![\w/.<-])((?:[\w-]+/)*[\w-]+\.(?:cpp|hpp|h))\b(?!\()")
FUNCTION_NAME = re.compile(r"`(?:\w+(?:::|\.))*(\w+)\(\)`")
WORD_IN_PAGE = re.compile(r"`(?:\w+(?:::|\.|->))*([a-z]\w*_\w+)`")
WORD_IN_DIAGRAM = re.compile(r"\b([a-z]\w*_\w+)\b(?!\.)")
WORD_IN_COMMENT = re.compile(r"\b([a-z]\w*_\w+)\b(?!\.\w)|\b(\w+)\(\)|`(\w+)`")
COMMENT = re.compile(r"//(.*)")
OTHERS_WORDS = {"move_pages", "malloc_info", "malloc_stats"}  # the kernel's and libc's, which we mention
OTHERS_FILES = ("linux/", "mm/", "mempolicy.h", "xxhash.h")
PLACEHOLDER = re.compile(r"[A-Z]{3}")  # LAYER/PART.hpp, commit_NAME
ENTRY = re.compile(r"^- ([A-Z]{1,2}[0-9]+): ((?:.*\n)(?:  .*\n)*)", re.MULTILINE)
INDEX_ROW = re.compile(r"^\| ([A-Z]{1,2}[0-9]+) \| .+ \| \[.*\]\((\S+)\) \|$", re.MULTILINE)
FILE_TABLE = re.compile(r"^\| (part|subject) \| files \|.*\n\|[ |-]+\n((?:\|.*\n)+)", re.MULTILINE)
EXPERIMENT = re.compile(r"\b(?:medians?|interleaved|quartiles?|[Tt]ried and left|[Mm]easured (?:on|with|beside)|"
                        r"[Tt]his was (?:tried|tested|measured)|before and now|turned out)\b")
SECTION = re.compile(r'(?:\bdocs/design/|[\s(])([\w-]+\.md)(?:\)?, "([^"]+)")')
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
DECISION_PARTS = ("\nDate: 20", "\n## Context\n", "\n## Decision\n", "\n## When to look again\n")
NUMBER = re.compile(r"\b[A-Z]{1,2}[0-9]{1,2}\b(?<!\bLZ4)")

FRAGMENT = """#include <stdio.h>
#include <string.h>
#include <taiyen/distributed.h>
#include <taiyen/outbox.h>
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

    def packs(self):
        return PACK_HEADER.search(self.text) is not None

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
    command = COMPILERS[block.language] + WARNINGS + INCLUDES + ["-"]
    program = None
    if library and block.is_program():
        program = os.path.join(folder, "program")
        pack = [os.path.join(os.path.dirname(library), "libtaiyen-pack.a")] if block.packs() else []
        command += ["-o", program, "-x", "none", *pack, library, "-pthread"]
        command += ["-llz4", "-lzstd", "-lstdc++"] if pack else []
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


def sections_named(text):
    return {(page, " ".join(section.split())) for page, section in SECTION.findall(text)}


def check_sections(named, pages):
    """Problems of (page, section) pairs: those of pages that are not here count as other documents'."""
    headings = {page: {line.lstrip("#").strip() for line in text.split("\n") if line.startswith("#")}
                for page, text in pages.items()}
    return [f'{page}: has no section "{section}", which is named elsewhere' for page, section in sorted(named)
            if page in pages and not any(heading.startswith(section) for heading in headings[page])]


class Code:
    """What design pages may name."""

    def __init__(self, folders=CODE_FOLDERS):
        self.files = set()  # paths
        self.words = set()  # of the code, not of its comments
        self.cited = {}  # in comments of what may keep one: invariant to the files
        self.comments = []  # path, line, text
        self.file_words = {}  # path to its words
        self.tests = set()  # suite.case of googletest, test_function of Python
        self.bare = []  # .cpp files without an opening comment
        self.sections = set()  # of design pages, named in comments: page and section
        for folder in folders:
            for directory, _, names in os.walk(folder):
                for name in names:
                    if name == "CMakeLists.txt":  # has the names of programs, but for test_heap and its like
                        with open(os.path.join(directory, name), encoding="utf-8") as file:
                            self.words.update(re.findall(r"\w+", file.read()))
                    elif name.endswith(".py") and directory.startswith(("packages/python", "tests/cli")):
                        with open(os.path.join(directory, name), encoding="utf-8") as file:
                            text = file.read()
                        self.words.update(re.findall(r"\w+", text))
                        self.tests.update(re.findall(r"^(?:    def |def |)(test_\w+)(?:\(| = )", text, re.MULTILINE))
                    elif name.endswith((".cpp", ".hpp", ".h", ".c")):
                        path = os.path.join(directory, name)
                        self.files.add(path)
                        with open(path, encoding="utf-8") as file:
                            self.add(file.read(), path)
        self.words.update("test_" + os.path.basename(folder) for folder in glob.glob("tests/*") + glob.glob("packages/*/tests") + glob.glob("tests/*/*"))
        self.faulted = set()  # invariants that a fault site breaks
        if folders and os.path.exists(FAULTS):
            with open(FAULTS, encoding="utf-8") as file:
                for line in file:
                    if not line.startswith("#") and line.count("|") == 3:
                        self.faulted.update(NUMBER.findall(line.split("|")[1]))

    def add(self, text, path):
        self.file_words[path] = set(re.findall(r"\w+", COMMENT.sub("", text)))
        self.words.update(self.file_words[path])
        self.tests.update(map(".".join, TEST_CASE.findall(text)))
        if path.startswith(("src/", "packages/")) and "/tests/" not in path and path.endswith(".cpp") and not text.startswith("//"):
            self.bare.append(path)
        self.sections.update(sections_named(re.sub(r"\n\s*//", "", text)))
        comments = [(path, number, found.group(1)) for number, found in enumerate(map(COMMENT.search, text.split("\n")), 1)
                    if found]
        self.comments += comments
        for number in NUMBER.findall("\n".join(comment for _, _, comment in comments)) if path.startswith(SOURCES) and "/tests/" not in path else ():
            self.cited.setdefault(number, set()).add(path)

    def named(self, name):
        """The files that a name, perhaps with some of its folders before it, stands for."""
        return {path for path in self.files if ("/" + path).endswith("/" + name)}

    def of_library(self, name):
        return sorted(path for path in self.named(name) if path.startswith(SOURCES[:3]) and "/tests/" not in path and not path.startswith("packages/python"))

    def wrong_file(self, name, beside=None):
        """What is wrong with a file's name, or None. beside: the folder of the file that names it."""
        if not self.has_file(name):
            return f"there is no file {name}"
        several = self.of_library(name)
        if len(several) > 1 and (beside is None or os.path.join(beside, name) not in several):
            return f"{name} is one of {', '.join(several)}: write it with its folder"
        return None

    def has_word(self, word):
        return word in self.words or word in OTHERS_WORDS or PLACEHOLDER.search(word) is not None

    def has_file(self, name):
        return bool(self.named(name)) or name.startswith(OTHERS_FILES) or PLACEHOLDER.search(name) is not None


def names_a_test(text, code):
    """Whether it is a test, or those that a pattern stands for: suite.case of googletest, perhaps with the names of parameters
    before and after it; a function of Python; else a program or a file of tests/."""
    case = re.sub(r"^[\w*]+/|(?<=[\w*])/[\w*]+$", "", text) if "." in text else text
    return bool(fnmatch.filter(code.tests, case)) or os.path.exists(os.path.join("tests", text)) or \
        all(word in code.words for word in re.findall(r"\w+", text.split()[0]))


def check_entry(page, number, text, code):
    """Problems of what a page says of an invariant."""
    kept, _, tests = " ".join(text.split()).partition("Test:")
    problems = []
    keepers = FILE_NAME.findall(kept.partition("Kept by")[2])
    problems += [f"{page}: {number}: {name}, which is said to keep it, does not name it" for name in keepers
                 if not code.named(name) & code.cited.get(number, set())]
    if not keepers:
        problems.append(f"{page}: {number}: no file is said to keep it")
    named = re.findall(r"`([^`]+)`", tests)
    if not named:
        problems.append(f"{page}: {number} names no test")
    problems += [f"{page}: {number}: there is no test {test}" for test in named if not names_a_test(test, code)]
    return problems


def check_comments(code):
    """Problems of the names in comments."""
    problems = []
    for path, line, text in code.comments:
        problems += [f"{path}:{line}: {wrong}" for wrong in (code.wrong_file(name, os.path.dirname(path))
                                                              for name in FILE_NAME.findall(text)) if wrong]
        problems += [f"{path}:{line}: there is no {word}" for word in map("".join, WORD_IN_COMMENT.findall(text))
                     if not code.has_word(word)]
    return problems + [f"{path}: has no opening comment, nor a header of its name" for path in code.bare
                       if path[:-4] + ".hpp" not in code.files]


def words_named(text):
    """What a page says of the code: functions, and words with underscores, also in diagrams."""
    words = FUNCTION_NAME.findall(text) + WORD_IN_PAGE.findall(text)
    for diagram in re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL):
        words += WORD_IN_DIAGRAM.findall(diagram)
    return words


def check_names(page, text, code):
    problems = [f"{page}: {wrong}" for wrong in map(code.wrong_file, FILE_NAME.findall(text)) if wrong]
    problems += [f"{page}: there is no {word}" for word in words_named(text) if not code.has_word(word)]
    for diagram in re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL):
        for line in diagram.split("\n"):
            names = FILE_NAME.findall(line)
            files = code.of_library(names[0]) if len(names) == 1 else []
            problems += [f"{page}: {word} is not in {names[0]}" for path in files
                         for word in WORD_IN_DIAGRAM.findall(line.partition(names[0])[0])
                         if word not in code.file_words[path]]
    return problems


def check_tables(pages, code):
    """Problems of the tables of files."""
    problems = []
    reported = set()
    for page, text in pages.items():
        for head, rows in FILE_TABLE.findall(text):
            part = ""
            for cell, named in re.findall(r"^\| (.*?)\| (.*?) \|.*$", rows, re.MULTILINE):
                part = cell.strip() or part
                paths = [path for name in FILE_NAME.findall(named) for path in code.of_library(name)]
                reported.update(os.path.splitext(path)[0] for path in paths)
                problems += [f"{page}: {path} is not in the part {part}" for path in paths
                             if head == "part" and not ("/" + os.path.dirname(path)).endswith("/" + part)]
    for path in sorted(path for path in code.files if path.startswith("src/")):
        stem, folder = os.path.splitext(path)[0], os.path.dirname(path)
        entry = path.endswith(".hpp") and os.path.basename(stem) == os.path.basename(folder)
        if stem not in reported and not entry:
            problems.append(f"{path}: stands in no table of a design page")
    return problems


def check_design(pages, code):
    """pages: name to text. Problems of the design pages and of their index of invariants."""
    problems = []
    declared = {}
    for page, text in sorted(pages.items()):
        problems += check_names(page, text, code)
        problems += [f"{page}: reports an experiment: {word}" for word in EXPERIMENT.findall(text)]
        for number, entry in ENTRY.findall(text):
            if number in declared:
                problems.append(f"{page}: {number} is also in {declared[number]}")
            declared[number] = page
            problems += check_entry(page, number, entry, code)
    named = set(code.sections).union(*map(sections_named, pages.values()))
    problems += check_sections(named, pages)
    problems += check_tables(pages, code)
    index = dict(INDEX_ROW.findall(pages.get("README.md", "")))
    for number in sorted(set(declared) | set(index)):
        if declared.get(number) != index.get(number):
            problems.append(f"{number}: in the page {declared.get(number)}, by the index in {index.get(number)}")
    used = set(code.cited) | code.faulted
    problems += [f"{number}: used in src or {FAULTS}, but in no design page"
                 for number in sorted(used - set(declared))]
    problems += [f"{number}: no comment in src or include names it" for number in sorted(set(declared) - set(code.cited))]
    return problems


def check_decision(page, text, index):
    problems = [f"{page}: has no {part.strip()}" for part in DECISION_PARTS if part not in text]
    listed = f"({os.path.basename(page)})" in index
    return problems if listed else problems + [f"{page}: is not in the README of its folder"]


def check_links(path, text):
    folder = os.path.dirname(path)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [f"{path}: leads to no file: {link}" for link in LINK.findall(prose)
            if not os.path.exists(os.path.join(folder, link))]


def read_design():
    pages = {}
    for path in glob.glob(os.path.join(DESIGN, "*.md")):
        with open(path, encoding="utf-8") as page:
            pages[os.path.basename(path)] = page.read()
    return pages


def self_test_design():
    """Problems: of sound pages, and planted errors that nothing was said of."""
    code = Code(folders=())
    code.files, code.cited = {"src/a/a.cpp", "src/a/c.cpp"}, {"I1": {"src/a/a.cpp"}}
    code.add("// Code.\nvoid keep(); // see a.cpp, `keep`, keep()\nint word_of_code, of_it;\n", "src/a/a.cpp")
    code.add("// More.\n", "src/a/c.cpp")
    for path in ("src/a/d.cpp", "src/b/d.cpp"):
        code.files.add(path)
        code.add("// Two of one name: d.cpp.\n", path)
    code.tests = {"a_test.of_it"}
    table = ("| part | files | what |\n| --- | --- | --- |\n| a | `a.cpp`, `c.cpp`, `a/d.cpp` | all |\n"
             "| b | `b/d.cpp` | more |\n")
    page = table + "- I1: it holds.\n  Kept by `keep()` (`a.cpp`). Test: `a_test.of_it`.\n"
    index = "| I1 | it holds | [a.md](a.md) |\n"
    bad = {
        "no keeper": (page.replace("(`a.cpp`)", ""), index),
        "a file that does not name it": (page.replace("(`a.cpp`)", "(`c.cpp`)"), index),
        "a file that is not there": (page.replace("(`a.cpp`)", "(`b.cpp`)"), index),
        "another file that does not name it": (page.replace("(`a.cpp`)", "(`a.cpp`, `c.cpp`)"), index),
        "a function that is not there": (page.replace("keep()", "lose()"), index),
        "a word that is not there": (page + "See `word_of_old`.\n", index),
        "a word that is not there, in a diagram": (page + "```\n word_of_old --> word_of_code\n```\n", index),
        "a file that is not there, in a diagram": (page + "```\n word_of_code   b.cpp\n```\n", index),
        "a file of several folders": (page + "See `d.cpp`.\n", index),
        "a file that is not in the folder": (page + "See `b/a.cpp`.\n", index),
        "a file in no table": (page.replace(", `c.cpp`", ""), index),
        "a file in another part's row": (page.replace("| b | `b/d.cpp`", "| a | `b/d.cpp`"), index),
        "a word that is not in the file after it": (page + "```\n word_of_code   c.cpp\n```\n", index),
        "no test": (page.replace("Test: `a_test.of_it`", ""), index),
        "a test that is not there": (page.replace("of_it", "of_it`, `b_test.of_it"), index),
        "not in the index": (page, ""),
        "in the index for another page": (page, index.replace("](a.md", "](b.md")),
        "in no page": (table, index),
        "a section that is not there": (page + 'See a.md, "No such".\n', index),
        "an experiment": (page + "Medians of 5 interleaved runs.\n", index),
        "without a citation": (page + page.replace("I1", "I2"), index + index.replace("I1", "I2")),
    }
    problems = check_design({"a.md": page, "README.md": index}, code)
    problems += [f"passed, but should not: {what}" for what, (text, rows) in bad.items()
                 if not check_design({"a.md": text, "README.md": rows}, code)]
    problems += check_comments(code)
    code.add("int bare;\n", "src/a/bare.cpp")
    if not check_comments(code):
        problems.append("passed, but should not: a file without an opening comment")
    code.bare = []
    bad_comments = ("see b.cpp", "see a.cpp and b/a.cpp", "see old/a.cpp", "calls word_of_old", "calls `lose`", "calls lose()")
    for text in bad_comments:
        code.comments = [("src/a/a.cpp", 1, text)]
        if not check_comments(code):
            problems.append(f"passed, but should not: a comment: {text}")
    decision = "# 1. A\nDate: 2026-11-26\n\n## Context\n## Decision\n## When to look again\n"
    problems += check_decision("docs/a.md", decision, "[1](a.md)")
    problems += check_links("docs/a.md", "[a](https://a/b) [b](#c)")
    if not check_decision("a.md", decision.replace("Date", "Day"), "(a.md)"):
        problems.append("passed, but should not: a decision without a date")
    if not check_decision("a.md", decision, ""):
        problems.append("passed, but should not: a decision in no list")
    if not check_links("docs/a.md", "[a](no/such.md)"):
        problems.append("passed, but should not: a link to no file")
    return problems, len(bad) + len(bad_comments) + 4


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
    failed_design, planted_design = self_test_design()
    failed += failed_design
    for problem in failed:
        print("self-test:", problem)
    print(f"{len(bad) + planted_design} planted errors, {len(failed)} problems")
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
            text = document.read()
        found, count, ran = check_document(path, text, library)
        problems += found + check_links(path, text)
        if os.path.dirname(path) == DECISIONS and os.path.basename(path) != "README.md":
            with open(os.path.join(DECISIONS, "README.md"), encoding="utf-8") as index:
                problems += check_decision(path, text, index.read())
        total += count
        total_ran += ran
    pages, code = read_design(), Code()
    problems += check_design(pages, code) + check_comments(code)
    with open("CONTRIBUTING.md", encoding="utf-8") as file:
        problems += check_names("CONTRIBUTING.md", file.read(), code)
    invariants = len(INDEX_ROW.findall(pages.get("README.md", "")))
    for problem in problems:
        print(problem)
    print(f"{invariants} invariants in the index")
    print(f"{total} code blocks compiled, {total_ran} programs run: {len(problems)} problems")
    return 1 if problems or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
