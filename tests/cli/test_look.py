#!/usr/bin/env python3
"""Goal: the commands that look into a heap tell what is in it, whatever state it is in, and write to none of its files.
Method: heaps whose content the test knows; figures of one command are held against those of another.

    tests/cli/test_look.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import pty
import signal
import subprocess

import support
from support import CliTest, hashes, run


class Held:
    """A heap that another process has open."""

    def __init__(self, test, name="held.ty"):
        self.path = test.path(name)
        self.process = subprocess.Popen([support.MAKE_HEAP, self.path, "hold"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        test.assertEqual(self.process.stdout.readline(), b"open\n")

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.process.communicate()


class Look(CliTest):
    def document(self, *words):
        return json.loads(self.succeeds(*words, "--json"))


class Stat(Look):
    def test_tells_what_info_map_and_log_tell(self):
        for how in ("close", "archive", "linked", "die", "commit", "parts", "undo"):
            with self.subTest(how):
                path = self.heap(how, how + ".ty")
                stat = self.document("stat", path)
                for command in (["info"], ["map"]):
                    for key, value in self.document(*command, path).items():
                        self.assertEqual(stat[key], value, key)
                if how in ("commit", "parts"):
                    log = self.document("log", "stat", path)
                    del log["path"]
                    self.assertEqual({**log, "used_bytes": stat["log"]["used_bytes"]}, stat["log"])
                else:
                    self.assertNotIn("log", stat)

    def test_roots_and_page_efficiency(self):
        path = self.heap("linked")
        stat = self.document("stat", path)
        self.assertEqual([(root["name"], root["block_bytes"]) for root in stat["roots"]], [("list", "64")])
        self.assertNotIn("type", stat["roots"][0])
        self.assertAlmostEqual(stat["page_efficiency"], int(stat["live_bytes"]) / int(stat["used_bytes"]))
        words = self.succeeds("stat", path)
        self.assertRegex(words, r"\n  root  address +block  type\n  list  0x[0-9a-f]+ +64\n +block ")
        self.assertIn("2,000 blocks of 125 KiB", words)

    def test_the_type_of_a_root_where_the_heap_keeps_shapes(self):
        path = self.heap("described")
        roots = {root["name"]: root for root in self.document("stat", path)["roots"]}
        self.assertEqual(roots["list"]["type"], "node")
        self.assertRegex(self.succeeds("stat", path), r"\n  list +0x[0-9a-f]+ +64  node\n")

    def test_undo(self):
        path = self.heap("undo")
        stat = self.document("stat", path)
        self.assertEqual((stat["undo"]["undoable"], stat["undo"]["redoable"]), ("2", "1"))
        self.assertEqual(stat["own_blocks"], "1")
        self.assertIn("2 transactions to undo, 1 to redo", self.succeeds("stat", path))
        self.assertNotIn("undo", self.document("stat", self.heap("close", "without.ty")))

    def test_what_waits(self):
        path = self.heap("die")
        stat = self.document("stat", path)
        self.assertGreater(int(stat["waiting_pages"]), 0)
        self.assertIn(f"{int(stat['waiting_pages']):,} pages that the image does not hold yet", self.succeeds("stat", path))

    def test_of_a_heap_that_is_open(self):
        with Held(self) as path:
            stat = self.document("stat", path)
            self.assertTrue(stat["in_use"])
            self.assertEqual(stat["live_blocks"], "688")

    def test_what_cannot_be_opened_is_told_as_far_as_it_can(self):
        path = self.heap("die")
        os.rename(path + "-journal", self.path("away"))
        result = self.fails(1, "stat", path, says=("without its journal",))
        self.assertIn("snapshot heap", result.stdout)
        result = self.fails(1, "stat", "--json", path)
        one = json.loads(result.stdout)
        self.assertEqual((one["kind"], one["error"]["status"]), ("snapshot", "TY_E_MISMATCH"))
        self.fails(2, "stat", self.path("none.ty"), says=("No such file",))

    def test_watch(self):
        path = self.heap("close")
        before = hashes(self.folder)
        for words, is_one in (([], lambda line: line.startswith(path)), (["--json"], json.loads)):
            process = subprocess.Popen([support.TAIYEN, "stat", "--watch", "--interval", "1s", path, *words],
                                       stdout=subprocess.PIPE, text=True)
            seen = 0
            while seen < 2:
                line = process.stdout.readline()
                self.assertNotEqual(line, "")
                self.assertNotIn("\x1b", line)
                seen += bool(is_one(line))
            process.send_signal(signal.SIGINT)
            process.communicate()
            self.assertEqual(process.returncode, 0)
        self.assertEqual(hashes(self.folder), before)
        self.fails(2, "stat", "--interval", "never", "--watch", path, says=("--interval", "'never'"))

    def terminal(self, words, **variables):
        """What the program writes to a terminal."""
        reader, writer = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        process = subprocess.Popen([support.TAIYEN, *words], stdout=writer,
                                   env={**environment, "TERM": "xterm", **variables})
        os.close(writer)
        text = b""
        try:
            while chunk := os.read(reader, 4096):
                text += chunk
                if words[-1] == "--watch" and text.count(b"\x1b[2J") == 2:
                    process.send_signal(signal.SIGTERM)
        except OSError:  # the terminal's end
            pass
        os.close(reader)
        self.assertEqual(process.wait(), 0)
        return text.decode()

    def test_on_a_terminal(self):
        path = self.heap("linked")
        self.assertIn("\x1b[1m", self.terminal(["stat", path]))
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b", self.terminal(["stat", path], **variables))
        self.assertEqual(self.terminal(["stat", path, "--watch"], NO_COLOR="1").count("\x1b[H\x1b[2J"), 2)


class NothingIsWritten(Look):
    """No command that looks changes a file, whatever the heap's state."""

    COMMANDS = (["info"], ["stat"], ["verify"], ["scrub"], ["map", "--json"], ["log", "stat"], ["log", "dump"],
                ["doubt"])

    def test_files_are_as_they_were(self):
        for how in ("close", "archive", "described", "undo", "die", "commit", "parts", "prepared"):
            path = self.heap(how, how + ".ty")
            before = hashes(self.folder)
            for command in self.COMMANDS:
                for form in ([], ["--json"]):
                    with self.subTest(how=how, command=command, form=form):
                        result = run(*command, path, *form)
                        self.assertNotIn(result.returncode, (-6, -11), result.stderr)
                        self.assertEqual(hashes(self.folder), before)


if __name__ == "__main__":
    support.main()
