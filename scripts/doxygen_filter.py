#!/usr/bin/env python3
"""Prepares a file for Doxygen, so that neither headers nor documents carry its marks.

    scripts/doxygen_filter.py FILE

Headers: plain comments become Doxygen's. One that starts a line belongs to what follows it; one behind code, to that
code; the first one to the file. Documents: the README in the root folder becomes the main page.
"""

import os
import re
import sys

ROOT_README = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "README.md"))


def header(text):
    text = re.sub(r"\A/\* ", "/** @file\n * ", text)
    text = re.sub(r"^([ \t]*)/\* ", r"\1/** ", text, flags=re.MULTILINE)
    return re.sub(r"(\S[ \t]+)/\* ", r"\1/**< ", text)


def main(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".h"):
        text = header(text)
    elif os.path.realpath(path) == ROOT_README:
        text = text.replace("\n", " {#mainpage}\n", 1)
    sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
