#!/usr/bin/env python3
"""Prepares a file for Doxygen, so that neither headers nor documents carry its marks.

    scripts/doxygen_filter.py FILE

Headers: plain comments become Doxygen's. One that starts a line belongs to what follows it; one after code, to that
code; the first one to the file, and so do those that stand alone. In C headers a comment holds for all declarations up to
the next empty line or comment.
Documents: the README in the root folder becomes the main page.
"""

import os
import re
import sys

ROOT_README = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "README.md"))
COMMENT = re.compile(r"/\*\* .*?\*/\n", re.DOTALL)
DECLARATION = re.compile(r"^(?:TY_API|typedef (?!struct|enum)) ?.*?;\n", re.MULTILINE | re.DOTALL)


def share_comment(paragraph):
    """The comment of a paragraph's first declaration, repeated before those that follow it."""
    comment, found, rest = paragraph.rpartition("*/\n")
    if not found or not COMMENT.fullmatch(text := comment[comment.rfind("/** "):] + found):
        return paragraph
    first = True

    def before(match):
        nonlocal first
        was_first, first = first, False
        return match.group(0) if was_first and match.start() == 0 else text + match.group(0)

    return comment + found + DECLARATION.sub(before, rest)


def c_header(text):
    text = re.sub(r"\A/\* ", "/** @file\n * ", text)
    text = re.sub(r"^([ \t]*)/\* (?!----)", r"\1/** ", text, flags=re.MULTILINE)
    text = re.sub(r"^/\*\* (?!@file)((?:(?!\*/).)*\*/\n\n)", r"/** @file\n * @details\n *\1", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(\S[ \t]+)/\* ", r"\1/**< ", text)
    # A paragraph ends with an empty line, or before a comment that starts a line.
    return "".join(map(share_comment, re.split(r"(?<=\n)(?=\n|/\*\* )", text)))


def cpp_header(text):
    text = re.sub(r"\A// ", "/// @file\n/// ", text)
    text = re.sub(r"^([ \t]*)//(?= |$)", r"\1///", text, flags=re.MULTILINE)
    return re.sub(r"([;}{,] +)// ", r"\1///< ", text)


def main(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".h"):
        text = c_header(text)
    elif path.endswith(".hpp"):
        text = cpp_header(text)
    elif os.path.realpath(path) == ROOT_README:
        text = text.replace("\n", " {#mainpage}\n", 1)
    sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
