#!/usr/bin/env python3
"""Goal: `taiyen ship` and `taiyen restore` do what their help says: a folder that is kept up, listed, verified, and
restored from, and refusals that change nothing. Method: heaps of make_heap, shipped once and all the time.

    tests/cli/test_ship.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import signal
import subprocess

import support
from support import CliTest, run


class Ship(CliTest):
    def shipped(self):
        heap, folder = self.heap("commit"), self.path("folder")
        said = self.succeeds("ship", "--once", heap, folder)
        self.assertRegex(said, r"shipped up to transaction \d+")
        return heap, folder

    def content(self, heap):
        packed = subprocess.run([support.TAIYEN, "pack", "--codec", "none", heap, "-"], capture_output=True, check=True)
        return packed.stdout[128:]  # header and times left out

    def test_there_and_back(self):
        heap, folder = self.shipped()
        listed = [json.loads(line) for line in self.succeeds("ship", "--list", "--json", folder).splitlines()]
        self.assertEqual({one["kind"] for one in listed}, {"base", "segment"})
        self.assertIn("sound", self.succeeds("ship", "--verify", folder))
        self.assertRegex(self.succeeds("restore", folder, self.path("back.ty")), r"as it was after transaction \d+")
        self.assertEqual(self.content(heap), self.content(self.path("back.ty")))
        self.assertEqual([name for name in os.listdir(self.folder) if "restoring" in name], [])
        newest = listed[-1]["last"]
        report = json.loads(self.succeeds("restore", "--json", "--to", newest, folder, self.path("second.ty")))
        self.assertEqual(report["lsn"], newest)
        self.succeeds("restore", "--to", "2100-01-01T00:00:00Z", folder, self.path("third.ty"))

    def test_refusals(self):
        heap, folder = self.shipped()
        self.fails(2, "restore", folder, heap, says=("there is a file of that name",))
        self.fails(2, "restore", "--to", "yesterday", folder, self.path("back.ty"), says=("'yesterday'",))
        self.fails(2, "restore", "--to", "2001-01-01T00:00:00Z", folder, self.path("back.ty"), says=("not shipped",))
        self.fails(2, "restore", "--to", "1970-01-01T00:00:00Z", folder, self.path("back.ty"), says=("not shipped",))
        for none in ("2026-11-31T00:00:00Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00", "2026-01-01T25:00:00Z",
                     "2026-01-01T00:61:00Z", "2612-01-01T00:00:00Z"):
            self.fails(2, "restore", "--to", none, folder, self.path("back.ty"), says=(f"'{none}'",))
        self.fails(2, "ship", "--once", heap, says=("folder",))
        self.fails(2, "ship", "--once", "--keep", "soon", heap, folder, says=("'soon'",))
        self.fails(2, "restore", self.path("nowhere"), self.path("back.ty"))
        other = self.heap("commit", "other.ty")
        self.fails(1, "ship", "--once", other, folder, says=("another",))
        base = next(name for name in os.listdir(folder) if name.startswith("base"))
        with open(os.path.join(folder, base), "r+b") as file:
            file.seek(-100, os.SEEK_END)
            byte = file.read(1)
            file.seek(-100, os.SEEK_END)
            file.write(bytes([byte[0] ^ 1]))
        result = run("ship", "--verify", folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn(base, result.stdout)
        self.fails(1, "restore", folder, self.path("back.ty"), says=(base,))
        os.remove(os.path.join(folder, base))
        result = run("ship", "--verify", folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a base; nothing is damaged", result.stderr)  # nothing is left that reports it

    def test_it_ends_with_an_interrupt(self):
        heap, folder = self.heap("commit"), self.path("folder")
        often = [support.TAIYEN, "ship", "--interval", "10m", heap, folder]  # the first base does not wait so long
        with subprocess.Popen(often, stdout=subprocess.PIPE, text=True) as shipper:
            while not (os.path.isdir(folder) and any(name.startswith("base") for name in os.listdir(folder))):
                self.assertIsNone(shipper.poll())
            self.fails(2, "ship", "--once", heap, folder, says=("another process",))
            shipper.send_signal(signal.SIGINT)
            said = shipper.communicate(timeout=60)[0]
            self.assertEqual(shipper.returncode, 0)
            self.assertIn("shipped up to", said)


if __name__ == "__main__":
    support.main()
