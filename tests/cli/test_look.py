#!/usr/bin/env python3
"""Goal: the commands that look into a heap report what is in it, whatever state it is in, and write to none of its files.
Method: heaps whose content the test knows; figures of one command are held against those of another.

    tests/cli/test_look.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import pty
import shutil
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
    def test_reports_what_info_map_and_log_report(self):
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

    def test_the_type_of_a_root_where_the_heap_keeps_descriptors(self):
        path = self.heap("described")
        roots = {root["name"]: root for root in self.document("stat", path)["roots"]}
        self.assertEqual(roots["list"]["type"], "node")
        self.assertRegex(self.succeeds("stat", path), r"\n  list +0x[0-9a-f]+ +64  node\n")

    def test_undo(self):
        path = self.heap("undo")
        stat = self.document("stat", path)
        self.assertEqual((stat["undo"]["undoable"], stat["undo"]["redoable"]), ("2", "1"))
        self.assertEqual(stat["internal_blocks"], "1")
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

    def test_what_cannot_be_opened_is_reported_as_far_as_it_can(self):
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


class Dump(Look):
    def entries(self, path):
        return [json.loads(line) for line in self.succeeds("dump", "--json", path).splitlines()]

    def test_reports_each_block_once(self):
        for how in ("close", "archive", "die", "commit", "undo"):
            path = self.heap(how, how + ".ty")
            head, *entries = self.entries(path)
            stat = self.document("stat", path)
            blocks = [one for one in entries if one["kind"] == "block"]
            roots = [one for one in entries if one["kind"] == "root"]
            self.assertEqual(len({one["address"] for one in blocks}), int(stat["live_blocks"]))
            self.assertEqual(sum(int(one["size_bytes"]) for one in blocks), int(stat["live_bytes"]))
            self.assertEqual([one["name"] for one in roots], [root["name"] for root in stat["roots"]])
            self.assertEqual(sum("internal" in one for one in blocks), int(stat["internal_blocks"]))
            self.assertEqual(head["live_blocks"], stat["live_blocks"])
            words = self.succeeds("dump", path)
            for one in blocks:
                self.assertIn("  " + one["address"], words)
            self.assertLessEqual(max(map(len, words.splitlines()[1:])), 80)

    def test_width(self):
        path = self.heap("linked")
        os.environ["COLUMNS"] = "200"
        self.addCleanup(os.environ.pop, "COLUMNS")
        self.assertGreater(max(map(len, self.succeeds("dump", path).splitlines())), 160)

    def test_a_block(self):
        path = self.heap("described")
        first, = [root for root in self.document("stat", path)["roots"] if root["name"] == "list"]
        block = self.document("dump", "--block", first["address"], path)
        self.assertEqual((block["address"], block["size_bytes"], block["type"]), (first["address"], "64", "node"))
        self.assertEqual(block["fields"], [{"name": "next", "offset": "0", "kind": "pointer", "type": "node"}])
        word, = block["words"]
        self.assertEqual(int.from_bytes(bytes.fromhex(block["bytes"])[:8], "little"), int(word["block"], 16))
        inside = hex(int(first["address"], 16) + 9)
        self.assertEqual(self.document("dump", "--block", inside, path), block)
        words = self.succeeds("dump", "--block", inside, path)
        self.assertIn(f"+0x0 next -> the block at {word['block']} of 64 bytes", words)
        self.assertIn("list: node", words)

    def test_a_block_of_pages_is_cut(self):
        path = self.heap("undo")
        own, = [one for one in self.entries(path) if one.get("internal")]
        words = self.succeeds("dump", "--block", own["address"], path)
        self.assertIn("it is one of the library's", words)
        self.assertIn("more; --json has all", words)
        block = self.document("dump", "--block", own["address"], path)
        self.assertEqual(len(block["bytes"]), 2 * int(own["size_bytes"]))

    def test_where_no_block_is(self):
        path = self.heap("linked")
        base = int(self.document("info", path)["base"], 16)
        for address, says in ((5, "not in the heap"), (base, "own tables"), (base + (60 << 20), "free pages")):
            self.fails(2, "dump", "--block", hex(address), path, says=(says, hex(address)))
        self.fails(2, "dump", "--block", "there", path, says=("--block", "'there'"))


class Diff(Look):
    def differs(self, *words):
        before = hashes(self.folder)
        result = run("diff", *words)
        self.assertEqual((result.returncode, result.stderr), (1, ""), result.stdout)
        self.assertEqual(hashes(self.folder), before)
        return result.stdout

    def change(self, path, at, bytes_):
        """Changes bytes of a closed heap's page in the image. An open does not look at the page's checksum."""
        with open(path, "r+b") as file:
            file.seek((2 << 20) + at)
            file.write(bytes_)

    def test_copies_are_the_same(self):
        for how in ("close", "archive", "described", "die", "commit"):
            path = self.heap(how, how + ".ty")
            self.succeeds("copy", path, self.path(how + "-copy.ty"))
            self.assertIn("the same roots and blocks", self.succeeds("diff", path, self.path(how + "-copy.ty")))

    def test_one_byte(self):
        path = self.heap("linked")
        shutil.copy(path, self.path("other.ty"))
        shutil.copy(path + "-journal", self.path("other.ty-journal"))
        root, = self.document("stat", path)["roots"]
        offset = int(root["address"], 16) - int(self.document("info", path)["base"], 16)
        self.change(self.path("other.ty"), offset + 20, b"!")
        self.assertIn(f"~ {root['address']}  64 bytes", self.differs(path, self.path("other.ty")))
        found = json.loads(self.differs(path, self.path("other.ty"), "--json"))
        self.assertEqual((found["changed_blocks"], found["new_blocks"], found["gone_blocks"]), ("1", "0", "0"))
        self.assertEqual((found["same"], found["changed_pages"], found["roots"]), (False, "1", []))

    def test_counts_of_two_heaps_are_those_of_each(self):
        one, other = self.heap("die", "one.ty"), self.heap("close", "other.ty")
        found = json.loads(self.differs(one, other, "--json", "--shown", "3"))
        old, new = (int(self.document("stat", path)["live_blocks"]) for path in (one, other))
        self.assertEqual(old - int(found["gone_blocks"]) + int(found["new_blocks"]), new)
        self.assertEqual(len(found["blocks"]), 3)
        back = json.loads(self.differs(other, one, "--json"))
        self.assertEqual((back["new_blocks"], back["gone_blocks"]), (found["gone_blocks"], found["new_blocks"]))

    def test_roots(self):
        found = json.loads(self.differs(self.heap("linked", "a.ty"), self.heap("undo", "b.ty"), "--json"))
        self.assertEqual([(one["change"], one["name"]) for one in found["roots"]], [("-", "list"), ("+", "text")])

    def test_since_the_snapshot(self):
        self.assertIn("nothing has changed", self.succeeds("diff", self.heap("close")))
        for how in ("commit", "parts"):
            path = self.heap(how, how + ".ty")
            found = json.loads(self.differs(path, "--json"))
            self.assertEqual((found["transactions"], found["new_blocks"], found["changed_blocks"]), ("3", "3", "0"))
            self.assertEqual([one["name"] for one in found["roots"]], ["newest"])
            self.assertEqual({(one["size_bytes"], one["written_bytes"]) for one in found["blocks"]}, {("128", "8")})
            self.assertIn("3 transactions since snapshot 0", self.differs(path))
        self.fails(2, "diff", self.heap("prepared", "doubt.ty"), says=("in doubt",))
        waiting = json.loads(self.differs(self.heap("die", "die.ty"), "--json"))
        self.assertEqual(sum(int(one["count"]) for one in waiting["page_ranges"]), int(waiting["waiting_pages"]))

    def test_what_cannot_be_compared(self):
        path = self.heap("close")
        self.fails(2, "diff", path, self.path("none.ty"), says=("none.ty",))
        with open(self.path("no.ty"), "wb") as file:
            file.write(bytes(8192))
        self.fails(2, "diff", path, self.path("no.ty"))
        self.fails(2, "diff", path, path, "--shown", "many", says=("--shown",))
        self.fails(2, "diff", path, path, "--log", "a", says=("one FILE",))


class NothingIsWritten(Look):
    """No command that looks changes a file, whatever the heap's state."""

    COMMANDS = (["info"], ["stat"], ["verify"], ["scrub"], ["map", "--json"], ["log", "stat"], ["log", "dump"],
                ["resolve"], ["dump"], ["diff"])

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
