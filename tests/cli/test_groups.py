#!/usr/bin/env python3
"""Goal: backups of groups of heaps, as the how-to makes them, come back whole, and what does not belong together is
refused; copies hold what was acknowledged, of programs that died and of one that lives. Method: a program with a group of
two heaps, which closes, dies or waits; the files copied as cp copies them, and by the commands.

    tests/cli/test_groups.py TAIYEN DTXNS [unittest arguments]
"""

import json
import os
import shutil
import subprocess
import unittest

import support
from support import CliTest, hashes, run

FILES = [name + suffix for name in ("a.ty", "b.ty") for suffix in ("", "-journal", "-log")]


class Groups(CliTest):
    def setUp(self):
        super().setUp()
        self.live = self.path("live")
        os.mkdir(self.live)

    def program(self, folder, *words):
        return subprocess.run([support.MAKE_HEAP, folder, *words], capture_output=True, text=True, check=False, timeout=60)

    def dtxns(self, count, end, folder=None):
        done = self.program(folder or self.live, str(count), end)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def holds(self, folder, number):
        done = self.program(folder, "look")
        self.assertEqual((done.returncode, done.stdout), (0, f"{number} {number}\n"), done.stderr)

    def holds_copies(self, number):
        done = subprocess.run([support.MAKE_HEAP, self.live, "copies"], capture_output=True, input="\n", text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, f"{number}\n{number} {number}\n"), done.stderr)

    def refuses(self, folder, *says):
        done = self.program(folder, "look")
        self.assertEqual(done.returncode, 3, done.stdout)
        for part in says:
            self.assertIn(part, done.stderr)

    def put(self, source, target, names=FILES):
        os.makedirs(target, exist_ok=True)
        for name in names:
            if os.path.exists(os.path.join(target, name)):
                os.remove(os.path.join(target, name))
            if os.path.exists(os.path.join(source, name)):
                shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
        return target

    def copy(self, folder, target, *names):
        os.makedirs(target, exist_ok=True)
        for name in names or ("a.ty", "b.ty"):
            self.succeeds("copy", os.path.join(folder, name), os.path.join(target, name))
        return target

    def test_closed_backups_come_back(self):
        self.dtxns(3, "close")
        backup = self.put(self.live, self.path("backup"))
        self.dtxns(2, "die")
        died = self.put(self.live, self.path("died"))  # as a snapshot of the file system has them
        self.holds(self.put(backup, self.path("again")), 3)
        self.holds(self.put(died, self.path("died again")), 5)
        for which, other in (("a", "b"), ("b", "a")):
            mixed = self.put(died, self.path("mixed " + which))
            self.put(backup, mixed, [name for name in FILES if name.startswith(which)])
            self.refuses(mixed, "TY_E_IN_DOUBT", f"{which}.ty is of another moment")
            self.put(died, mixed, [name for name in FILES if name.startswith(which)])
            self.holds(mixed, 5)

    def test_copies_of_a_group_at_rest_come_back(self):
        self.dtxns(3, "die")
        before = hashes(self.live)
        backup = self.copy(self.live, self.path("backup"))
        self.assertEqual(before, hashes(self.live), "a copy changes the heaps")
        self.holds(backup, 3)
        self.dtxns(1, "close")
        self.put(self.copy(self.live, self.path("later")), self.path("mixed"))
        self.put(backup, self.path("mixed"), [name for name in FILES if name.startswith("b")])
        self.refuses(self.path("mixed"), "TY_E_MISMATCH", "b.ty")

    def test_a_copy_that_comes_back_twice(self):
        self.dtxns(3, "close")
        for name in ("a", "b"):
            self.succeeds("pack", os.path.join(self.live, name + ".ty"), self.path(name + ".typ"))
        first = self.path("first")
        os.mkdir(first)
        for name in ("a", "b"):
            self.succeeds("unpack", self.path(name + ".typ"), os.path.join(first, name + ".ty"))
        self.dtxns(2, "close", first)  # the restored ones go on
        for name in FILES[3:]:
            if os.path.exists(os.path.join(first, name)):
                os.remove(os.path.join(first, name))
        self.succeeds("unpack", self.path("b.typ"), os.path.join(first, "b.ty"))
        self.refuses(first, "TY_E_MISMATCH", "b.ty")
        self.dtxns(1, "close")
        mixed = self.put(self.live, self.path("mixed"), FILES[:3])  # the first heap itself, and a copy of the other one
        self.succeeds("unpack", self.path("b.typ"), os.path.join(mixed, "b.ty"))
        self.refuses(mixed, "TY_E_MISMATCH", "b.ty")
        self.succeeds("resolve", "--restored", os.path.join(mixed, "a.ty"), os.path.join(mixed, "b.ty"))
        done = self.program(mixed, "1", "close")
        self.assertEqual((done.returncode, done.stdout), (0, "5 4\n"), done.stderr)

    def test_what_is_in_doubt(self):
        self.dtxns(4, "die")
        a, b = os.path.join(self.live, "a.ty"), os.path.join(self.live, "b.ty")
        before = hashes(self.live)
        for words in (("pack", a, self.path("a.typ")), ("dump", a), ("map", a, "-o", self.path("a.svg")), ("stat", a),
                      ("diff", a, a), ("copy", b, self.path("b.ty"))):
            self.succeeds(*words)
        since = json.loads(run("diff", a, "--json").stdout)
        self.assertEqual(since["new_blocks"], "2")  # the number, and what the library keeps of the group
        self.assertEqual(since["transactions"], "6")
        self.assertEqual(before, hashes(self.live), "a command that reads changes the heaps")
        self.succeeds("unpack", self.path("a.typ"), self.path("a.ty"))
        self.holds(self.folder, 4)
        os.rename(b, b + "-away")
        for words in (("copy", a, self.path("other.ty")), ("pack", a, self.path("other.typ")), ("dump", a)):
            self.fails(1, *words, says=("in doubt", "b.ty"))
        self.assertFalse(os.path.exists(self.path("other.ty")))
        self.assertFalse(os.path.exists(self.path("other.typ")))

    def test_of_a_program_that_lives(self):
        for count in (1, 4):
            with subprocess.Popen([support.MAKE_HEAP, self.live, str(count), "wait"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) as program:
                number = int(program.stdout.readline().split()[0])
                self.assertEqual(program.stdout.readline(), "ready\n")
                copies = self.copy(self.live, self.path(f"copies {count}"))
                program.stdin.close()
            self.holds(copies, number)

    def test_copies_beside_another_heap(self):
        self.dtxns(3, "close")
        copies = self.copy(self.live, self.path("copies"))
        done = self.program(copies, "1", "close", "3")
        self.assertEqual((done.returncode, done.stdout), (0, "4 4 1\n"), done.stderr)
        self.holds(copies, 4)  # they go on as the group that they are copies of, too

    def test_a_copy_beside_an_older_one(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([support.MAKE_HEAP, self.live, "2", "wait"], **pipes) as program:
            self.assertEqual([program.stdout.readline() for _ in range(2)], ["2 2\n", "ready\n"])
            with subprocess.Popen([support.MAKE_HEAP, self.live, "copies"], stderr=subprocess.PIPE, **pipes) as reader:
                self.assertEqual(reader.stdout.readline(), "2\n")
                program.stdin.write("\n")
                program.stdin.flush()
                self.assertEqual(program.stdout.readline(), "3 3\n")
                why = reader.communicate("\n", timeout=60)[1]  # it is unknown whether a.ty has the third one by now
                self.assertEqual(reader.returncode, 3)
                self.assertIn("a.ty: close the older copy of it that is open here", why)
            self.holds_copies(3)
            program.stdin.close()

    def test_a_heap_that_is_made_anew(self):
        self.dtxns(3, "close")
        right = self.put(self.live, self.path("right"))
        for name in FILES[3:]:
            os.remove(os.path.join(self.live, name))
        self.refuses(self.live, "TY_E_MISMATCH", "b.ty", "another heap lay here")
        self.put(right, self.live, FILES[3:])
        self.holds(self.live, 3)

    def test_restored_is_said_for_all(self):
        self.dtxns(1, "close")
        a, b = os.path.join(self.live, "a.ty"), os.path.join(self.live, "b.ty")
        self.fails(2, "resolve", "--restored", a, says=("all the heaps",))
        self.fails(2, "resolve", "--restored", "--commit", a, b, says=("give one of",))
        self.fails(2, "resolve", "--restored", a, self.path("none.ty"), says=("none.ty",))
        said = [json.loads(line) for line in run("resolve", "--restored", "--json", a, b).stdout.splitlines()]
        self.assertEqual(said, [{"path": path, "restored": True} for path in (a, b)])
        self.holds(self.live, 1)


if __name__ == "__main__":
    support.main()
