#!/usr/bin/env python3
"""Goal: `taiyen pack`, `unpack`, `copy`, `compact` and `check` keep a heap's content, replace nothing, and leave nothing
half-made. Method: heaps in every state there and back; kills.

    tests/cli/test_pack.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import random
import subprocess
import time

import support
from support import CliTest, hashes, run


class Pack(CliTest):
    """Content is compared by the log's or the map's figures, and by what `pack --codec none` gives of both heaps."""

    def packed_bytes(self, heap):
        result = subprocess.run([support.TAIYEN, "pack", "--codec", "none", heap, "-"], capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        return result.stdout

    def content(self, heap):
        """The frames of a stream: header and times left out."""
        return self.packed_bytes(heap)[128:]

    def test_there_and_back(self):
        for how, kind in (("close", "snapshot"), ("archive", "archive"), ("commit", "transactional"), ("die", "snapshot")):
            heap = self.heap(how, how + ".ty")
            before = hashes(self.folder)
            said = self.succeeds("pack", heap, self.path(how + ".typ"))
            self.assertRegex(said, r"packed into")
            self.assertEqual({name: hash for name, hash in hashes(self.folder).items() if name in before}, before)
            said = self.succeeds("unpack", self.path(how + ".typ"), self.path("back.ty"))
            self.assertRegex(said, f"unpacked into an? {kind} heap at 0x")
            self.assertEqual(self.content(heap), self.content(self.path("back.ty")))
            self.succeeds("verify", self.path("back.ty"))
            os.remove(self.path("back.ty"))

    def test_options(self):
        heap = self.heap("close")
        packed = self.path("packed")
        reported = json.loads(self.succeeds("pack", "--json", "--codec", "zstd", "--level=9", "--threads", "1", heap, packed))
        self.assertEqual((reported["path"], reported["packed"]), (heap, packed))
        self.assertEqual(int(reported["packed_bytes"]), os.path.getsize(packed))
        reported = json.loads(
            self.succeeds("unpack", "--json", "--kind", "archive", "--limit", "1G", packed, self.path("large.ty")))
        self.assertEqual((reported["kind"], reported["moved"], reported["base"]), ("archive", False, reported["old_base"]))
        reported = json.loads(self.succeeds("unpack", "--json", "--class-table", "dense", "--force", "--base",
                                        "0x560000000000", packed, self.path("tight.ty")))
        self.assertEqual((reported["base"], reported["moved"]), ("0x560000000000", True))
        self.assertGreater(int(reported["used_bytes"]), int(reported["live_bytes"]))
        self.succeeds("verify", self.path("tight.ty"))

    def test_through_a_pipe(self):
        heap = self.heap("close")
        result = subprocess.run(f"'{support.TAIYEN}' pack '{heap}' - | '{support.TAIYEN}' unpack - '{self.path('piped.ty')}'", shell=True,
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.content(heap), self.content(self.path("piped.ty")))

    def test_copy(self):
        for how in ("close", "commit"):
            heap = self.heap(how, how + ".ty")
            copy = self.path(how + "-copy.ty")
            before = hashes(self.folder)
            self.succeeds("copy", heap, copy)
            self.assertEqual(hashes(self.folder) | before, hashes(self.folder))
            self.assertEqual(self.content(heap), self.content(copy))
            self.assertNotEqual(json.loads(self.succeeds("info", "--json", heap))["identity"],
                                json.loads(self.succeeds("info", "--json", copy))["identity"])

    def test_copy_of_what_may_only_be_read(self):
        heap = self.heap("close")
        for suffix in ("", "-journal"):
            os.chmod(heap + suffix, 0o444)
        result = subprocess.run([*self.as_nobody(), support.TAIYEN, "copy", heap, self.path("copy.ty")],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.content(heap), self.content(self.path("copy.ty")))

    def test_what_is_there_stays(self):
        heap = self.heap("close")
        self.succeeds("pack", heap, self.path("packed"))
        self.fails(2, "pack", heap, self.path("packed"), says=("exists",))
        self.fails(2, "unpack", self.path("packed"), heap, says=("there is a file of that name",))
        self.fails(2, "copy", heap, heap, says=("there is a file of that name",))
        self.fails(2, "copy", self.path("none"), self.path("copy"), says=("none",))

    def test_check_of_a_packed_heap(self):
        heap = self.heap("close")
        packed = self.path("packed")
        self.succeeds("pack", heap, packed)
        self.assertIn("a sound packed heap (snapshot, at 0x", self.succeeds("check", packed))
        reported = json.loads(self.succeeds("check", "--json", packed))
        self.assertEqual((reported["sound"], reported["kind"]), (True, "snapshot"))
        self.fails(2, "check", heap, says=("does not begin as one",))
        self.fails(2, "check", self.path("none"), says=("none",))
        with open(packed, "r+b") as file:
            file.seek(300)
            byte = file.read(1)
            file.seek(300)
            file.write(bytes([byte[0] ^ 1]))
        self.fails(1, "check", packed, says=("checksum",))

    def test_compact_and_check_of_pointers(self):
        heap = self.heap("linked")
        descriptors = self.path("types")
        with open(descriptors, "w") as file:
            file.write('taiyen types 1\ntype "node" 64\nfield 0 "next" pointer "node"\nroot "list" "node"\n')
        self.assertRegex(self.succeeds("check", "--pointers", "--types", descriptors, heap), r"sound; [0-9,]+ blocks reached")
        self.fails(2, "check", "--pointers", heap, says=("keeps no type descriptors",))
        self.fails(2, "compact", heap, says=("keeps no type descriptors",))
        reported = json.loads(self.succeeds("compact", "--json", "--types", descriptors, heap))
        self.assertLess(int(reported["used_bytes"]), int(reported["old_used_bytes"]) / 2)
        self.succeeds("verify", heap)
        self.assertRegex(self.succeeds("check", "--pointers", "--types", descriptors, heap), r"sound; [0-9,]+ blocks reached")
        with open(descriptors, "w") as file:
            file.write('taiyen types 1\ntype "node" 64\nroot "list" "node"\n')
        result = run("check", "--pointers", "--types", descriptors, heap)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertIn("node", result.stdout)
        self.assertIn("no field leads there, but perhaps words that no field names", result.stdout)
        self.assertNotIn("(harmless)", result.stdout)  # the one forgotten pointer leads to all others
        reported = json.loads(run("check", "--pointers", "--json", "--types", descriptors, heap).stdout)
        self.assertEqual((reported["sound"], reported["mismatches"][0]["kind"], reported["mismatches"][0]["offset"]),
                         (False, "hidden", "0"))
        result = run("compact", "--types", descriptors, heap)
        self.assertEqual(result.returncode, 1)
        self.assertIn("node", result.stderr)
        self.succeeds("verify", heap)

    def test_compact_makes_no_small_heap_larger(self):
        for how in ("close", "archive", "commit"):
            heap = self.heap(how, how + ".ty")
            reported = json.loads(self.succeeds("compact", "--force", "--json", heap))
            self.assertLessEqual(int(reported["used_bytes"]), int(reported["old_used_bytes"]), how)
            self.succeeds("verify", heap)

    def test_compact_makes_the_log_again_as_it_was(self):
        heap = self.heap("commit")
        size = os.path.getsize(heap + "-log")
        for _ in range(2):
            self.succeeds("compact", "--force", heap)
            self.assertEqual(os.path.getsize(heap + "-log"), size)
        self.assertIn("transactional", self.succeeds("info", heap))

    def test_compact_removes_what_a_killed_one_left(self):
        heap = self.heap("close")  # as a transactional one is while its log is made again
        left = heap + "-log-creating"
        with open(left, "wb") as file:
            file.write(bytes(5000))
        self.succeeds("compact", "--force", heap)
        self.assertFalse(os.path.exists(left))
        self.succeeds("verify", heap)

    def test_refusals(self):
        heap = self.heap("close")
        packed = self.path("packed")
        self.succeeds("pack", heap, packed)
        new = self.path("new.ty")
        self.fails(2, "pack", heap, says=("needs FILE PACKED",))
        self.fails(2, "pack", "--codec", "rar", heap, new, says=("lz4, zstd or none",))
        self.fails(2, "pack", "--level", "x", heap, new, says=("whole number",))
        self.fails(2, "pack", "--level", "13", heap, new, says=("no such level",))
        self.fails(2, "pack", "--threads", "0", heap, new, says=("1 to 256",))
        self.fails(2, "unpack", "--kind", "volatile", packed, new, says=("archive, snapshot or transactional",))
        self.fails(2, "unpack", "--limit", "64KB", packed, new, says=("64G",))
        self.fails(2, "unpack", "--limit", "99999999999T", packed, new, says=("64G",))
        self.fails(2, "unpack", "--base", "here", packed, new, says=("0x420000000000",))
        self.fails(2, "unpack", "--class-table", "other", packed, new, says=("cache-line or dense",))
        self.fails(2, "unpack", "--elsewhere", packed, new, says=("addresses would be wrong", "type descriptors"))
        self.fails(2, "unpack", heap, new, says=("does not begin as one",))
        for command, source in (("unpack", packed), ("copy", heap)):
            self.fails(2, command, source, "-", says=("name a file",))
        self.fails(2, "unpack", packed, self.path("none/new.ty"), says=("No such file",))
        with open(packed, "r+b") as file:
            file.truncate(os.path.getsize(packed) - 1)
        self.fails(1, "unpack", packed, new, says=("cut off",))

    def test_killed(self):
        """Whatever the moment: nothing, or all of it, is under the final name, and another try succeeds."""
        heap = self.heap("commit")
        packed = self.path("packed")
        self.succeeds("pack", heap, packed)
        content = self.content(heap)
        dice = random.Random(1)
        for command, source in (("pack", heap), ("unpack", packed), ("copy", heap)):
            began = time.monotonic()
            self.succeeds(command, source, self.path(command + "-first"))
            lasts = time.monotonic() - began
            before = hashes(self.folder)
            made = self.path(command + "-made")
            for _ in range(20):
                with subprocess.Popen([support.TAIYEN, command, source, made], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as process:
                    try:
                        process.communicate(timeout=dice.uniform(0, lasts))
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.communicate()  # what it had started has ended as well
                self.assertEqual(hashes(self.folder) | before, hashes(self.folder))
                if os.path.exists(made):
                    self.succeeds(*(("check", made) if command == "pack" else ("verify", made)))
                    for name in os.listdir(self.folder):
                        if name.startswith(os.path.basename(made)):
                            os.remove(self.path(name))
            self.succeeds(command, source, made)
            if command != "pack":
                self.assertEqual(self.content(made), content)


if __name__ == "__main__":
    support.main()
