#!/usr/bin/env python3
"""Goal: docs/man/taiyen.1 has each command and each option of the program, and none that it has not; nor has the table of
commands in docs/reference.md. Method: hold both against what --help says of each command.

    tests/cli/check_man.py TAIYEN
"""

import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def walk(program):
    """The commands, and their long options, as the help shows them."""
    def help_of(*words):
        return subprocess.run([program, "help", *words], check=True, capture_output=True, text=True).stdout

    def listed(*words):
        return re.findall(r"^  (\w+)", help_of(*words).partition("\nSubcommands:\n")[2].partition("\n\n")[0], re.MULTILINE)

    commands = [" ".join([one, *more]) for one in listed() for more in [[two] for two in listed(one)] or [[]]]
    texts = [help_of()] + [help_of(*command.split()) for command in commands]
    options = set(re.findall(r"^ +(?:-\w,)?(--\w[\w-]*)", "\n".join(texts), re.MULTILINE))
    return set(commands) | {"help"}, options


def main():
    commands, options = walk(sys.argv[1])
    page = (DOCS / "man" / "taiyen.1").read_text(encoding="utf-8")
    in_page = {"commands": set(re.findall(r"^\.It Cm (.*)$", page, re.MULTILINE)),
               "options": set("-" + name for line in re.findall(r"^\.It Fl (.*)$", page, re.MULTILINE)
                              for name in re.findall(r"(-[\w-]+)", line))}
    problems = 0
    for what, there in (("commands", commands), ("options", options)):
        for name in sorted(there ^ in_page[what]):
            problems += 1
            print(f"{name}: only in {'the program' if name in there else 'the manual page'}")
    table = re.findall(r"^\| `taiyen .*$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = set(re.findall(r"`(--[a-z][a-z-]*)", "\n".join(table)))
    for name in sorted(named - options):
        problems += 1
        print(f"{name}: only in the reference")
    problems += not named
    print(f"{len(commands)} commands, {len(options)} options: {problems} problems")
    return 1 if problems or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
