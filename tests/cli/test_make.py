#!/usr/bin/env python3
"""Goal: heaps are made, get larger and become another kind, keep their content, and no file is replaced. Method: run
the commands, and compare with what `taiyen diff` and `info` report.

    tests/cli/test_make.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import shutil
import subprocess

import support
from support import CliTest, hashes


class Make(CliTest):
    def document(self, *words):
        return json.loads(self.succeeds(*words, "--json"))

    def kept(self, path, name="kept.ty"):
        """A copy of the heap's files, to be compared with later."""
        for suffix in ("", "-journal", "-log"):
            if os.path.exists(path + suffix):
                shutil.copy(path + suffix, self.path(name) + suffix)
        return self.path(name)


class Create(Make):
    def test_each_kind(self):
        for kind in ("archive", "snapshot", "transactional"):
            path = self.path(kind + ".ty")
            made = self.document("create", path, "--kind", kind, "--limit", "100M")
            self.assertEqual((made["kind"], made["limit_bytes"], made["closed"]), (kind, str(128 << 20), True))
            self.succeeds("verify", path)
            self.assertEqual(self.document("stat", path)["live_blocks"], "0")
            self.assertEqual(os.path.exists(path + "-journal"), kind != "archive")

    def test_options(self):
        path = self.path("a.ty")
        made = self.document("create", path, "--base", "0x420000000000", "--class-table", "dense", "--limit", "64M",
                             "--kind", "transactional", "--log-size", "2M", "--log-streams", "2", "--log", self.path("l"))
        self.assertEqual((made["base"], made["classes"]), ("0x420000000000", "dense"))
        log = self.document("log", "stat", path, "--log", self.path("l"))
        self.assertEqual(len(log["log_streams"]), 2)
        self.assertIn("snapshot heap, format", self.succeeds("create", self.path("default.ty")))

    def test_nothing_is_replaced(self):
        for how in ("close", "archive", "commit"):
            path = self.heap(how, how + ".ty")
            self.fails(2, "create", path, says=("exists",))
        os.rename(path, self.path("away"))
        self.fails(1, "create", path)  # the journal that is left may be needed

    def test_wrong_values(self):
        for words, says in ((["--kind", "other"], "archive, snapshot or transactional"), (["--limit", "lots"], "500M"),
                            (["--class-table", "x"], "cache-line or dense"), (["--base", "x"], "0x420000000000"),
                            (["--log-size", "2M"], "--kind transactional"), (["--log-streams", "9"], "1 to 8"),
                            (["--kind", "transactional", "--log-size", "1K"], ""), (["--base", "0x1000"], "64 MiB")):
            self.fails(2, "create", self.path("a.ty"), *words, says=(says,))


class Resize(Make):
    def test_a_larger_limit(self):
        for how in ("close", "archive", "linked", "die", "commit", "parts"):
            path = self.heap(how, how + ".ty")
            kept = self.kept(path, how + "-kept.ty")
            self.assertEqual(self.document("resize", path, "--limit", "300M")["limit_bytes"], str(320 << 20))
            self.succeeds("verify", path)
            self.succeeds("diff", kept, path)

    def test_the_limit_that_it_has(self):
        path = self.heap("close")
        before = hashes(self.folder)
        self.assertEqual(self.document("resize", path, "--limit", "60M")["limit_bytes"], str(64 << 20))
        self.assertEqual(hashes(self.folder), before)

    def test_what_is_refused(self):
        path = self.heap("close")
        self.succeeds("resize", path, "--limit", "200M")
        self.fails(2, "resize", path, "--limit", "64M", says=("taiyen copy FILE COPY --limit SIZE",))
        self.fails(2, "resize", path, says=("--limit SIZE",))
        self.fails(2, "resize", path, "--limit", "x", says=("--limit",))
        self.fails(2, "resize", path, "--limit", "18446744073709551615", says=("--limit",))
        self.fails(2, "resize", self.path("none.ty"), "--limit", "1G", says=("none.ty",))
        self.assertIn("64 MiB", self.succeeds("copy", path, self.path("small.ty"), "--limit", "64M")
                      and self.succeeds("info", self.path("small.ty")))
        self.succeeds("diff", path, self.path("small.ty"))

    def test_an_open_heap(self):
        path = self.path("held.ty")
        process = subprocess.Popen([support.MAKE_HEAP, path, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        self.fails(2, "resize", path, "--limit", "1G", says=("open already",))
        self.fails(2, "convert", path, "--in-place", "--kind", "transactional", says=("open already",))
        process.communicate()


class Marks(Make):
    def marks(self, *words):
        return {mark["name"]: mark for mark in self.document(*words)["marks"]}

    def test_there_and_back(self):
        for how in ("close", "die", "commit", "atomic"):
            path = self.heap(how, how + ".ty")
            self.assertEqual(self.marks("marks", path), {})
            self.assertTrue(self.marks("mark", path, "begin")["begin"]["current"])
            kept = self.kept(path, how + "-kept.ty")
            other = self.heap("linked", how + "-other.ty")
            if how == "close":
                self.assertEqual(self.succeeds("marks", other), other + ": no durable marks\n")
            subprocess.run([support.MAKE_HEAP, path, "commit" if how == "atomic" else how], check=False, stdout=subprocess.DEVNULL)
            changed = self.kept(path, how + "-changed.ty")
            marks = self.marks("mark", path, "later")
            self.assertEqual(marks["later"]["parent"], "begin")
            self.assertFalse(marks["begin"]["current"])
            self.assertTrue(self.marks("return", path, "begin")["begin"]["current"])
            self.succeeds("verify", path)
            self.succeeds("diff", kept, path)
            self.succeeds("return", path, "later")
            self.succeeds("diff", changed, path)
            self.assertEqual(list(self.marks("marks", path, "--drop", "begin")), ["later"])
            self.succeeds("marks", path, "--drop", "later")
            self.assertFalse(os.path.exists(path + "-marks"))

    def test_what_is_refused(self):
        path = self.heap("close")
        self.succeeds("mark", path, "a")
        before = hashes(self.folder)
        self.fails(2, "return", path, "b", says=('"b"', "marks"))
        self.fails(2, "marks", path, "--drop", "b", says=('"b"',))
        self.fails(2, "mark", path, "a", says=('"a"', "drop"))
        self.fails(2, "mark", path, "x" * 64, says=("name",))
        self.fails(2, "resize", path, "--limit", "1G", says=("durable marks",))
        self.assertEqual(hashes(self.folder), before)
        self.fails(2, "mark", self.heap("archive", "archive.ty"), "a", says=("archive",))
        self.fails(2, "mark", self.path("none.ty"), "a", says=("none.ty",))

    def test_views_and_branches(self):
        for how in ("close", "die", "commit"):
            path = self.heap(how, how + "@.ty")
            self.succeeds("mark", path, "a@b")
            kept = self.kept(path, how + "-kept.ty")
            subprocess.run([support.MAKE_HEAP, path, how], check=False, stdout=subprocess.DEVNULL)
            at_mark = path + "@a@b"
            self.succeeds("diff", kept, at_mark)
            self.assertEqual(support.run("diff", at_mark, path).returncode, 1)
            before = hashes(self.folder)
            dumps = [self.succeeds("dump", of).partition("\n")[2] for of in (at_mark, kept)] # without path and kind
            self.assertEqual(*dumps)
            self.succeeds("pack", at_mark, self.path(how + ".packed"))
            self.succeeds("copy", at_mark, self.path(how + "-copy.ty"))
            self.succeeds("map", at_mark, "--json")
            self.fails(2, "dump", path + "@none", says=('"none"',))
            self.fails(2, "dump", self.path("none.ty@a@b"), says=("none.ty@a@b",))
            self.assertEqual({name: hashes(self.folder)[name] for name in before}, before)
            new, now = self.path(how + "-new.ty"), self.path(how + "-now.ty")
            document = self.document("branch", at_mark, new)
            self.assertEqual((document["path"], document["from"], document["mark"]), (new, path, "a@b"))
            self.assertIn("a branch of " + path, self.succeeds("branch", path, now))
            self.fails(2, "branch", path, now, says=("exists already",))
            for made, same in ((new, kept), (now, path)):
                self.succeeds("verify", made)
                self.succeeds("diff", made, same)
                self.assertEqual(self.document("info", made)["base"], self.document("info", path)["base"])
                self.assertNotEqual(self.document("info", made)["identity"], self.document("info", path)["identity"])
            info = self.document("info", path)
            self.assertEqual(info["marks"], "1")
            self.assertEqual(info["marks_bytes"], str(os.path.getsize(path + "-marks")))

    def test_beside_a_writer(self):
        path = self.path("held.ty")
        self.heap("close", "held.ty")
        self.succeeds("mark", path, "a")
        process = subprocess.Popen([support.MAKE_HEAP, path, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        self.assertEqual(list(self.marks("marks", path)), ["a"])
        self.succeeds("branch", path + "@a", self.path("new.ty"))
        self.succeeds("branch", path, self.path("now.ty"))
        self.succeeds("diff", self.path("new.ty"), path + "@a")
        self.succeeds("verify", self.path("new.ty"))
        self.fails(2, "return", path, "a", says=("open already",))
        process.communicate()

    def test_damage(self):
        path = self.heap("close")
        self.succeeds("mark", path, "a")
        self.succeeds("verify", path)
        with open(path + "-marks", "r+b") as file:
            file.truncate(8192)
        result = support.run("scrub", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("-marks", result.stdout)
        self.fails(1, "marks", path, says=("move it away",))
        self.assertIn("durable ones are left out", self.succeeds("repair", path, self.path("repaired.ty")))
        os.remove(path + "-marks")
        self.succeeds("verify", path)


class Convert(Make):
    def test_in_place(self):
        ways = {"archive": ("snapshot", "transactional"), "close": ("transactional",), "die": ("transactional",),
                "commit": ("snapshot",), "parts": ("snapshot",)}
        for how, kinds in ways.items():
            for kind in kinds:
                with self.subTest(how=how, kind=kind):
                    path = self.heap(how, f"{how}-{kind}.ty")
                    kept = self.kept(path, "kept-" + os.path.basename(path))
                    self.assertEqual(self.document("convert", path, "--in-place", "--kind", kind)["kind"], kind)
                    self.succeeds("verify", path)
                    self.succeeds("diff", kept, path)
                    self.assertEqual(os.path.exists(path + "-log"), kind == "transactional")

    def test_log_of_what_becomes_transactional(self):
        path = self.heap("close")
        self.succeeds("convert", path, "--in-place", "--kind", "transactional", "--log-size", "2M", "--log-streams", "2")
        self.assertEqual(len(self.document("log", "stat", path)["log_streams"]), 2)
        before = hashes(self.folder)
        self.succeeds("convert", path, "--in-place", "--kind", "transactional")
        self.assertEqual(hashes(self.folder), before)

    def test_copies(self):
        for how in ("archive", "die", "commit"):
            for kind in ("archive", "snapshot", "transactional"):
                path, copy = self.heap(how, how + kind + ".ty"), self.path(how + kind + "-copy.ty")
                before = hashes(self.folder)
                self.succeeds("convert", path, copy, "--kind", kind)
                self.assertEqual({name: hashed for name, hashed in hashes(self.folder).items() if name in before}, before)
                self.assertEqual(self.document("info", copy)["kind"], kind)
                self.succeeds("diff", path, copy)

    def test_what_is_refused(self):
        path = self.heap("commit")
        other = self.heap("close", "other.ty")
        self.fails(2, "convert", path, other, "--kind", "archive", says=("exists",))
        self.fails(2, "convert", path, "--in-place", "--kind", "archive", says=("taiyen convert FILE COPY --kind archive",))
        self.fails(2, "convert", path, "--kind", "archive", says=("COPY, or --in-place",))
        self.fails(2, "convert", path, other, "--in-place", "--kind", "archive", says=("both",))
        self.fails(2, "convert", path, "--in-place", says=("--kind KIND",))
        self.fails(2, "convert", path, "--in-place", "--kind", "other", says=("transactional",))
        self.fails(2, "convert", self.heap("undo", "undo.ty"), "--in-place", "--kind", "transactional", says=("undo",))


if __name__ == "__main__":
    support.main()
