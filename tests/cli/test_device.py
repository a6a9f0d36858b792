#!/usr/bin/env python3
"""Goal: `taiyen device` does what its help says: figures that agree with each other, in the table, in JSON and in the
picture; and DIR is as it was whatever ends the program. Method: short runs in a folder of the test's own; no figure of a
disk is asserted, only how they belong together. Where the end of the program is not the end of its work (it was killed),
the test waits for the end of standard error, which the process that removes the files keeps open.

    tests/cli/test_device.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import re
import resource
import signal
import subprocess
import unittest
import xml.etree.ElementTree

import support
from support import CliTest, hashes, run

WAYS = ["write_fdatasync", "dsync", "direct_fdatasync", "direct_dsync", "log", "stream"]
SIZES = [4096 << 2 * i for i in range(6)]
SHORT = ("--seconds", "1", "--size", "64M")


def is_memory(folder):
    """Whether the folder is one of a tmpfs that may be written to."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        types = {line.split()[1]: line.split()[2] for line in mounts}
    return types.get(folder) == "tmpfs" and os.access(folder, os.W_OK)


def curves_drawn(one):
    return {(each["way"], each["threads"], each["append"]) for each in one["writes"]}


class Device(CliTest):
    def setUp(self):
        super().setUp()
        self.disk = self.path("disk")
        os.mkdir(self.disk)

    def measured(self, *options):
        one = json.loads(self.succeeds("device", *SHORT, "--json", *options, self.disk))
        self.assertEqual(os.listdir(self.disk), [])
        return one

    def assert_near(self, value, wanted):
        self.assertLessEqual(abs(value - wanted), 0.01 + abs(wanted) * 1e-3)

    def test_the_table(self):
        said = self.succeeds("device", *SHORT, self.disk)
        for title in ("Writes a second", "Bytes a second"):
            table = said.partition(f"\n{title} ")[2].partition("\n\n")[0].splitlines()
            self.assertEqual(re.findall(r"\d+ [KM]iB", table[0]), ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"])
            self.assertTrue(table[1].startswith("write, fdatasync "))
            self.assertRegex(table[1], r"\d")
            self.assertIn("O_DIRECT, RWF_DSYNC ", said)
        self.assertLessEqual(max(len(line) for line in said.splitlines() if not line.startswith("  log_bytes")), 100)
        self.assertEqual(os.listdir(self.disk), [])

    def test_figures_belong_together(self):
        one = self.measured()
        self.assertEqual((one["path"], one["seconds"], one["size_bytes"]), (self.disk, 1, str(64 << 20)))
        kinds = {}
        for each in one["writes"] + [one[name] for name in ("log_beside_snapshot", "scattered") if name in one]:
            self.assertIn(each["way"], WAYS)
            self.assertGreater(int(each["writes"]), 0)
            self.assert_near(each["writes_per_s"], int(each["writes"]) * 1e9 / int(each["ns"]))
            self.assert_near(each["bytes_per_s"], each["writes_per_s"] * each["write_bytes"])
            self.assertLessEqual(each["median_us"], each["p99_us"])
        for each in one["writes"]:
            kinds.setdefault((each["way"], each["threads"], each["append"]), []).append(each["write_bytes"])
        for sizes in kinds.values():  # in order, each once
            self.assertEqual(sizes, [size for size in SIZES if size in sizes])
        self.assertIn(("write_fdatasync", 1, False), kinds)  # what comes first is measured on any disk
        left_out = {each["way"] for each in one["left_out"]}
        self.assertEqual(left_out & {way for way, _, _ in kinds}, set())
        self.assertLessEqual(left_out, set(WAYS) - {"write_fdatasync", "dsync"})
        for each in one["advice"]:
            self.assertTrue(each["option"] and each["value"])
            self.assertRegex(each["why"], r"\d")
        self.assertTrue(one["place"]["notes"])
        self.assertGreaterEqual(one["rounds_apart"], 1)
        reported = [note for note in one["place"]["notes"] if "rounds of measuring" in note]
        if abs(one["rounds_apart"] - 1.5) > 0.01:  # it is rounded
            self.assertEqual(bool(reported), one["rounds_apart"] > 1.5)

    def test_pictures(self):
        one = self.measured("--output", self.path("curves.svg"))
        self.assertEqual(one["picture"], self.path("curves.svg"))
        root = xml.etree.ElementTree.parse(self.path("curves.svg")).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        with open(self.path("curves.svg"), encoding="utf-8") as file:
            strokes = re.findall(r'stroke(?::|=")rgb', file.read())  # of curves and of the legend
        self.assertGreaterEqual(len(strokes), 3 * len(curves_drawn(one)))
        self.measured("-o", self.path("curves.png"))
        with open(self.path("curves.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_a_folder_whose_name_is_no_utf8(self):
        self.disk = os.fsencode(self.disk) + b"\xff"
        os.mkdir(self.disk)
        self.addCleanup(os.rmdir, self.disk)
        self.succeeds("device", *SHORT, "--json", "-o", self.path("curves.svg"), self.disk)
        self.assertGreater(os.path.getsize(self.path("curves.svg")), 10000)

    def test_a_load(self):
        load = self.measured("--load", "100,6,256")["load"]
        self.assertEqual((load["commit_bytes"], load["pages"], load["set_pages"]), ("100", "6", "256"))
        self.assertEqual([each["durable"] for each in load["runs"]], [True, False])
        for each in load["runs"]:
            self.assertGreater(int(each["transactions"]), 0)
            self.assertGreaterEqual(int(each["snapshots"]), 1)
            self.assertGreater(each["dirty_bytes_per_transaction"], 0)
            predicted = 1 / (1 / each["log_alone_per_s"] + each["dirty_bytes_per_transaction"] / each["snapshot_bytes_per_s"])
            self.assertLess(abs(each["predicted_per_s"] / predicted - 1), 0.05)  # figures are rounded
        said = self.succeeds("device", *SHORT, "--load", "64,1", self.disk)
        self.assertIn("Load: commits of 64 bytes in 1 page out of 2,048\n", said)
        for line in ("log alone", "snapshots", "predicted", "measured"):
            self.assertRegex(said, rf"\n{line}, a second +\d")

    def test_refusals(self):
        file = self.path("file")
        with open(file, "wb"):
            pass
        self.fails(2, "device", self.path("nowhere"), says=(self.path("nowhere"), "give a folder"))
        self.fails(2, "device", file, says=("give a folder",))
        self.fails(2, "device", self.disk, self.disk, says=("[DIR]",))
        for seconds in ("0", "3601", "soon", "-1"):
            self.fails(2, "device", f"--seconds={seconds}", self.disk, says=("--seconds", seconds))
        for size in ("1M", "much", "2000T"):
            self.fails(2, "device", "--size", size, self.disk, says=("--size", size))
        self.fails(2, "device", "--size", "1023T", self.disk, says=("are free", "--size"))
        self.fails(2, "device", "--output", "curves.txt", self.disk, says=("--output", ".svg or .png"))
        for load in ("100", "100,", "100,0", "100,200", ",6", "100,6,", "100,6,7,8", "100,6,5", "x,1", "5000,1", "100,1,9999999",
                     "18446744073709551615,18446744073709551615", "4M,4000"):
            self.fails(2, "device", "--load", load, self.disk, says=("--load", "100,6"))
        refused = self.fails(2, "device", "--json", self.path("nowhere"))
        one = json.loads(refused.stdout)
        self.assertEqual((one["path"], one["error"]["status"]), (self.path("nowhere"), "TY_E_NOT_FOUND"))
        self.assertEqual(os.listdir(self.disk), [])

    @unittest.skipIf(os.geteuid() == 0, "all folders may be written to")
    def test_a_folder_that_may_not_be_written_to(self):
        os.chmod(self.disk, 0o500)
        self.fails(2, "device", self.disk, says=("may be written to",))

    def test_a_limit_of_file_sizes(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        result = run("device", *SHORT, self.disk, preexec_fn=limit)
        self.assertEqual(result.returncode, 2)
        self.assertIn("ulimit -f", result.stderr)
        self.assertEqual(os.listdir(self.disk), [])

    def test_other_files_stay(self):
        for name in ("disk", "append", "heap.ty", "heap.ty-log"):
            with open(os.path.join(self.disk, name), "w", encoding="utf-8") as file:
                file.write(name)
        before = hashes(self.disk)
        self.succeeds("device", *SHORT, "--load", "8,1,16", self.disk)
        self.assertEqual(hashes(self.disk), before)

    def test_memory_is_reported(self):
        if not is_memory("/dev/shm"):
            self.skipTest("there is no tmpfs at /dev/shm")
        before = os.listdir("/dev/shm")
        one = json.loads(self.succeeds("device", *SHORT, "--json", "/dev/shm"))
        self.assertTrue(one["place"]["in_memory"])
        self.assertIn("mean nothing", one["place"]["notes"][0])
        self.assertEqual(one["advice"], [])
        self.assertEqual([name for name in os.listdir("/dev/shm") if name.startswith("taiyen-device")],
                         [name for name in before if name.startswith("taiyen-device")])

    # ---- The end.

    def begun(self, name, *options):
        """A program that works long, and its folder, in which there is already the file of that name."""
        program = subprocess.Popen([support.TAIYEN, "device", "--size", "64M", *options, self.disk],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        folder = ""
        while not (folder and os.path.exists(os.path.join(folder, name))):
            self.assertIsNone(program.poll())
            for entry in os.listdir(self.disk):
                folder = os.path.join(self.disk, entry)
        self.assertIn("taiyen-device-", folder)
        return program, folder

    def test_nothing_stays_when_it_is_ended(self):
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            program, _ = self.begun("disk", "--seconds", "600")
            os.killpg(program.pid, one)  # as a terminal does
            said = program.communicate(timeout=60)
            self.assertEqual(program.returncode, -one)
            self.assertEqual(said, ("", ""))
            self.assertEqual(os.listdir(self.disk), [])

    def test_no_heap_stays_when_it_is_ended(self):
        for one in (signal.SIGINT, signal.SIGKILL):
            program, _ = self.begun("heap.ty", "--seconds", "4", "--load", "100,6")
            program.send_signal(one)
            self.assertEqual(program.communicate(timeout=60), ("", ""))
            self.assertEqual(os.listdir(self.disk), [])

    def test_what_others_put_there_stays(self):
        program, folder = self.begun("disk", "--seconds", "600")
        with open(os.path.join(folder, "mine"), "w", encoding="utf-8") as file:
            file.write("mine")
        program.kill()
        said = program.communicate(timeout=60)[1]
        self.assertIn(f"cannot remove the folder {folder}", said)
        self.assertEqual(os.listdir(folder), ["mine"])


if __name__ == "__main__":
    support.main()
