#!/usr/bin/env python3
"""Goal: docs/man/taiyen.1 has each command and each option of the program, and none that it has not, its synopsis by
command; nor has the table of commands in docs/reference.md. Method: hold both against what --help says of each command.

    tests/cli/check_man.py TAIYEN
"""

import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


FOR_ALL = {"--help", "--journal", "--log"}  # which the synopsis leaves out


def walk(program):
    """The commands' long options, as the help shows them, by command."""
    def help_of(*words):
        return subprocess.run([program, "help", *words], check=True, capture_output=True, text=True).stdout

    listed = help_of().partition("\nCommands:\n")[2].partition("\n\n")[0]
    commands = re.findall(r"^  (\w+(?: \w+)?)  ", listed, re.MULTILINE)
    return {one: set(re.findall(r"^ +(?:-\w, )?(--\w[\w-]*)", help_of(*one.split()), re.MULTILINE)) for one in commands}


def synopsis(page):
    """The same, as the manual page has them."""
    found = {}
    for block in page.partition(".Sh SYNOPSIS\n")[2].partition(".Sh ")[0].split(".Nm\n")[1:]:
        command = re.match(r"\.Cm (.*)", block)
        words = " ".join(re.findall(r"\bFl (.*)", block)).replace("| ", "")
        found[command[1] if command else ""] = {
            "--output" if name == "o" else "-" + name for name in re.findall(r"(?<!\S)(o|-[\w-]+)", words)}
    return found


def main():
    commands = walk(sys.argv[1])
    options = set().union(*commands.values())
    page = (DOCS / "man" / "taiyen.1").read_text(encoding="utf-8")
    in_page = {"commands": set(re.findall(r"^\.It Cm (.*)$", page, re.MULTILINE)),
               "options": set("-" + name for line in re.findall(r"^\.It Fl (.*)$", page, re.MULTILINE)
                              for name in re.findall(r"(-[\w-]+)", line))}
    problems = 0
    in_synopsis = synopsis(page)
    for command, there in commands.items():
        for name in sorted((there - FOR_ALL) ^ in_synopsis.get(command, {"command"})):
            problems += 1
            print(f"{command}: {name}: not as in the synopsis of the manual page")
    for what, there in (("commands", set(commands)), ("options", options)):
        for name in sorted(there ^ in_page[what]):
            problems += 1
            print(f"{name}: only in {'the program' if name in there else 'the manual page'}")
    table = re.findall(r"^\| `taiyen .*$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = set(re.findall(r"`(--[a-z][a-z-]*)", "\n".join(table)))
    for name in sorted(named - options - {"--version"}):
        problems += 1
        print(f"{name}: only in the reference")
    problems += not named
    print(f"{len(commands)} commands, {len(options)} options: {problems} problems")
    return 1 if problems or not commands else 0


if __name__ == "__main__":
    sys.exit(main())
