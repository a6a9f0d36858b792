#!/usr/bin/env python3
"""Goal: shells complete each command and option of the program, and the words that an option takes. Method: ask the
shells that are installed, bash always; compare what they get with the help.

    tests/cli/test_completion.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import re
import shutil
import subprocess
import unittest

import support
from support import CliTest


def commands():
    listed = support.run("help").stdout.partition("\nCommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\w+(?: \w+)?)  ", listed, re.MULTILINE)


def options_of(command):
    return re.findall(r"^ +(?:-\w, )?(--\w[\w-]*)", support.run("help", *command.split()).stdout, re.MULTILINE)


class Completion(CliTest):
    def written(self, shell):
        path = self.path("completion." + shell)
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.succeeds("completion", shell))
        return path

    def bash(self, *words):
        """What bash offers for the last of the words."""
        script = f"""source {self.written('bash')}
                     COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() {{ :; }}; _taiyen; printf '%s\\n' "${{COMPREPLY[@]}}" """
        result = subprocess.run(["bash", "--norc", "-c", script, "bash", "taiyen", *words], capture_output=True,
                                text=True, check=True, cwd=self.folder)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash("sta")[:1], ["stat"])
        firsts = {command.split()[0] for command in commands()}
        self.assertEqual(set(self.bash("")), firsts | {"--help", "--version"})
        self.assertEqual(self.bash("log", ""), ["stat", "dump"])
        for command in commands():
            if command not in ("help", "version"):
                self.assertEqual(set(self.bash(*command.split(), "--")), set(options_of(command)) | {"--help"}, command)
        self.assertEqual(self.bash("create", "--kind", "s"), ["snapshot"])
        self.assertEqual(self.bash("create", "--kind", "=", "s"), ["snapshot"])
        for value in self.bash("create", "--class-table", ""):
            self.succeeds("create", self.path(value), "--class-table", value)
        self.assertEqual(self.bash("completion", ""), ["bash", "zsh", "fish"])
        self.heap("close")
        self.assertEqual(sorted(self.bash("info", "atlas.ty")), ["atlas.ty", "atlas.ty-journal"])
        self.assertEqual(self.bash("info", "--journal", "atlas.ty-"), ["atlas.ty-journal"])

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish(self):
        def offered(line):
            result = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"],
                                    capture_output=True, text=True, check=True, cwd=self.folder)
            return [one.split("\t")[0] for one in result.stdout.splitlines()]

        path = self.written("fish")
        self.assertEqual(offered("taiyen sta")[:1], ["stat"] if "standby" not in commands() else ["standby"])
        self.assertEqual(set(offered("taiyen log ")), {"stat", "dump"})
        for command in ("create", "stat", "repair", "log dump"):
            self.assertLessEqual(set(options_of(command)) - {"--help"}, set(offered(f"taiyen {command} --")), command)
        self.assertEqual(offered("taiyen create --kind s"), ["snapshot"])

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        path = self.written("zsh")
        subprocess.run(["zsh", "-n", path], check=True)
        script = f"autoload -U compinit; compinit -u -D; source {path}; print $_comps[taiyen]"
        result = subprocess.run(["zsh", "-fc", script], capture_output=True, text=True, check=True)
        self.assertEqual((result.stdout, result.stderr), ("_taiyen\n", ""))

    def test_each_option_is_in_each(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.succeeds("completion", shell)
            for command in commands():
                self.assertIn(command.split()[-1], text)
                for option in options_of(command):
                    if option != "--help":
                        self.assertIn(("-l " + option[2:] + " ") if shell == "fish" else option, text + " ")

    def test_another_shell(self):
        self.fails(2, "completion", "tcsh", says=("bash, zsh or fish", "'tcsh'"))
        self.fails(2, "completion", says=("needs a SHELL",))


if __name__ == "__main__":
    support.main()
