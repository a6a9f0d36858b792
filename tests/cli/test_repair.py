#!/usr/bin/env python3
"""Goal: of a damaged heap, `taiyen repair` gets what can be had, says truly what is missing, and never crashes.
Method: heaps whose undamaged twin is at hand; regions of image, journal and log are flipped, zeroed and cut off; what
was repaired is compared with the twin, and what differs must have been reported.

    tests/cli/test_repair.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import random
import resource
import signal
import subprocess

import support
from support import CliTest, hashes, run

PAGES_OFFSET = 2 << 20
PAGE = 4096
SEED = int(os.environ.get("TAIYEN_TEST_SEED", "39"))
SUFFIXES = ("", "-journal", "-log")


def pages_of(report):
    stretches = [(int(each["first"]), int(each["count"])) for each in report["pages"]]
    return {page for first, count in stretches for page in range(first, first + count)}


def page_of(file, page):
    return os.pread(file.fileno(), PAGE, PAGES_OFFSET + page * PAGE)


class Repair(CliTest):
    def copy_of(self, path, name):
        for suffix in SUFFIXES:
            if os.path.exists(path + suffix):
                subprocess.run(["cp", "--sparse=always", path + suffix, self.path(name) + suffix], check=True)
        return self.path(name)

    def remove(self, name):
        for suffix in SUFFIXES:
            if os.path.exists(self.path(name) + suffix):
                os.remove(self.path(name) + suffix)

    def change(self, path, at, content):
        """One byte becomes another one, whatever it was: a checksum may have any."""
        with open(path, "r+b") as file:
            file.seek(at)
            if len(content) == 1 and file.read(1) == content:
                content = bytes([content[0] ^ 0xff])
            file.seek(at)
            file.write(content)

    def repair(self, path, out="out.ty"):
        """The report; the damaged files are as they were."""
        before = hashes(self.folder)
        result = run("repair", path, self.path(out), "--json")
        after = hashes(self.folder)
        self.assertEqual({name: after[name] for name in before}, before)
        self.assertIn(result.returncode, (0, 1, 2), result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 2 if result.returncode == 2 else 0 if report.get("whole") else 1)
        if "error" in report:
            self.assertEqual(set(after), set(before), "what is no heap is left behind")
            return None
        self.assertEqual(json.loads(run("info", "--json", self.path(out)).stdout)["kind"], report["repaired_kind"])
        if report["damaged_tables"] == "0" and report["unchecked_pages"] == "0":
            self.succeeds("verify", self.path(out))
        return report

    def differences(self, twin, out="out.ty"):
        result = run("diff", twin, self.path(out), "--json", "--shown", "100000")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout)

    def check_truth(self, twin, report):
        """Whatever differs from the twin lies in a page that the report names, or after an epoch that it says is lost,
        or it reports a problem. Of a heap that was not closed, the end may be lost without a trace."""
        if report["damaged_tables"] != "0" and run("diff", twin, self.path("out.ty")).returncode == 2:
            return  # what is a block there cannot be known
        found = self.differences(twin)
        if report["whole"]:
            self.assertTrue(found["same"] or not report["closed"] or report["unchecked_pages"] != "0", (report, found))
            return
        lost = int(report["epoch"]) < int(report["durable_epoch"])
        if report["problems"] or not report["closed"] or report["unchecked_pages"] != "0" or lost:
            return
        base = int(found["bases"][0], 16)
        pages = pages_of(report)
        for block in found["blocks"]:
            first = (int(block["address"], 16) - base) // PAGE
            last = (int(block["address"], 16) - base + int(block.get("size_bytes", block.get("old_bytes"))) - 1) // PAGE
            self.assertTrue(pages & set(range(first, last + 1)), (block, report))


class Sound(Repair):
    def test_a_heap_without_damage_is_whole(self):
        for how in ("close", "archive", "described", "undo", "die", "commit", "parts", "churn", "reserved",
                    "atomic"):
            with self.subTest(how):
                path = self.heap(how, how + ".ty")
                report = self.repair(path, how + "-out.ty")
                self.assertEqual((report["whole"], report["problems"], report["pages"]), (True, [], []))
                self.assertEqual(report["unchecked_pages"] == "0", how != "archive")
                found = self.differences(path, how + "-out.ty")
                is_same = found["same"]
                if how in ("reserved", "atomic"):  # the library's own list of blocks is gone
                    is_same = [found[name] for name in ("new_blocks", "gone_blocks", "changed_blocks", "roots")] == \
                        ["0", "1", "0", []]
                self.assertTrue(is_same, found)
                self.succeeds("verify", self.path(how + "-out.ty"))
                if how in ("commit", "parts"):
                    self.assertEqual(report["transactions"], "3")
                if how == "churn":
                    self.assertGreater(int(report["transactions"]), 200)

    def test_in_doubt_is_left_out(self):
        report = self.repair(self.heap("prepared"))
        self.assertEqual((report["transactions"], report["roots"]), ("1", ["newest"]))
        self.assertEqual((report["in_doubt"], report["whole"]), ("1", False))
        self.remove("out.ty")
        text = run("repair", self.path("atlas.ty"), self.path("out.ty")).stdout
        self.assertIn("not all", text)
        self.assertIn("1 in doubt", text)

    def test_an_archive_whose_program_died(self):
        report = self.repair(self.heap("abandoned"))
        self.assertEqual((report["whole"], report["closed"]), (False, False))
        self.remove("out.ty")
        self.assertIn("several moments", run("repair", self.path("atlas.ty"), self.path("out.ty")).stdout)

    def test_text(self):
        path = self.heap("commit")
        words = self.succeeds("repair", path, self.path("out.ty"))
        self.assertIn("all, as far as its files show", words)
        self.assertIn("3 transactions done again", words)
        self.assertIn("3 blocks", words)


class Damaged(Repair):
    def test_a_page_of_blocks(self):
        path = self.heap("linked")
        twin = self.copy_of(path, "twin.ty")
        root, = json.loads(run("stat", "--json", path).stdout)["roots"]
        base = int(json.loads(run("info", "--json", path).stdout)["base"], 16)
        offset = int(root["address"], 16) - base
        page = offset // PAGE
        self.change(path, PAGES_OFFSET + offset + 20, b"\xff\xee")
        report = self.repair(path)
        self.assertEqual((pages_of(report), report["damaged_pages"], report["lost_roots"]), ({page}, "1", ["list"]))
        self.assertGreater(int(report["damaged_blocks"]), 0)
        self.check_truth(twin, report)
        self.assertEqual(self.differences(twin)["changed_blocks"], "1")
        self.remove("out.ty")
        words = run("repair", path, self.path("out.ty"))
        self.assertEqual(words.returncode, 1)
        self.assertIn("not all", words.stdout)
        self.assertIn("list leads to a damaged block", words.stdout)

    def test_both_headers_of_the_image(self):
        path = self.heap("close")
        twin = self.copy_of(path, "twin.ty")
        for slot in (0, PAGE):
            self.change(path, slot + 505, b"\x5a")
        self.fails(1, "info", path)
        report = self.repair(path)
        self.assertTrue(report["header_doubtful"])
        self.assertFalse(report["whole"])
        self.assertTrue(self.differences(twin)["same"])
        self.change(path, 0, bytes(2 * PAGE))
        self.fails(2, "repair", path, self.path("other.ty"))

    def test_pages_in_any_order(self):
        path = self.heap("linked")
        twin = self.copy_of(path, "twin.ty")
        for page in (5, 6, 8, 9):
            self.change(path, PAGES_OFFSET + page * PAGE + 8, b"\xff\xee")
        subprocess.run(["fallocate", "--punch-hole", "--offset", str(PAGES_OFFSET + 7 * PAGE), "--length", str(PAGE),
                        path], check=True)  # reported after all that is there
        report = self.repair(path)
        self.assertEqual(report["pages"], [{"first": "5", "count": "5"}])
        self.check_truth(twin, report)

    def test_an_image_that_is_cut(self):
        path = self.heap("close")
        twin = self.copy_of(path, "twin.ty")
        os.truncate(path, PAGES_OFFSET + (64 << 20))
        report = self.repair(path)  # only its checksums are missing
        self.assertIn("cut short", report["problems"][0])
        self.assertTrue(self.differences(twin)["same"])
        os.truncate(path, PAGES_OFFSET + (40 << 20))
        self.remove("out.ty")
        report = self.repair(path)  # what is a block is missing, too: pages are all there is
        self.assertFalse(report["whole"])
        self.assertNotEqual(report["damaged_tables"], "0")
        self.assertIn("no extent starts there", report["problems"][-1])
        with open(twin, "rb") as one, open(self.path("out.ty"), "rb") as other:
            differing = {page for page in range(10240) if page_of(one, page) != page_of(other, page)}
        self.assertLessEqual(differing, pages_of(report) | {0})

    def test_what_has_no_checksum_is_reported(self):
        path = self.heap("close")
        report = self.repair(path)
        self.assertEqual(report["unchecked_pages"], "0")
        self.change(path, PAGES_OFFSET + (64 << 20) + 100, b"\xff")  # a sector of checksums
        self.remove("out.ty")
        report = self.repair(path)
        self.assertGreater(int(report["unchecked_pages"]), 0)
        self.remove("out.ty")
        result = run("repair", path, self.path("out.ty"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("have no checksum", result.stdout)
        self.assertIn("the checksums of pages 0 to 62 are damaged", result.stdout)

    def test_a_journal_that_is_gone(self):
        path = self.heap("die")
        os.remove(path + "-journal")
        report = self.repair(path)
        self.assertEqual((report["epoch"], report["image_epoch"]), ("2", "2"))
        self.assertEqual((report["whole"], report["several_moments"]), (False, True))
        self.assertEqual(report["live_blocks"], "688")
        self.remove("out.ty")
        self.assertIn("several moments", run("repair", path, self.path("out.ty")).stdout)

    def test_a_batch_of_the_journal(self):
        path = self.heap("die")
        self.change(path + "-journal", os.path.getsize(path + "-journal") // 8, bytes(64 * PAGE))
        report = self.repair(path)
        self.assertIn(report["epoch"], ("2", "3"))
        self.assertEqual((report["whole"], report["several_moments"]), (False, True))
        self.assertIn(report["live_blocks"], ("688", "1032"))

    def test_a_log_that_is_gone(self):
        path = self.heap("commit")
        os.remove(path + "-log")
        report = self.repair(path)
        self.assertEqual((report["transactions"], report["live_blocks"], report["whole"]), ("0", "0", False))

    def test_a_log_of_another_heap(self):
        path, other = self.heap("commit"), self.heap("commit", "other.ty")
        words = run("repair", "--log", other + "-log", path, self.path("out.ty"))
        self.assertEqual(words.returncode, 1, words.stderr)
        self.assertIn("it is of another heap", words.stdout)
        self.assertIn("0 transactions done again", words.stdout)

    def test_one_header_of_the_image(self):
        path = self.heap("close")
        self.change(path, 505, b"\x5a")
        report = self.repair(path)
        self.assertEqual((report["whole"], report["header_doubtful"], report["pages"]), (False, False, []))
        self.assertIn("one of the image's two headers is damaged", report["problems"][0])

    def test_problems_that_are_not_shown_are_counted(self):
        path = self.heap("close")
        for sector in range(130):  # of checksums
            self.change(path, PAGES_OFFSET + (64 << 20) + 512 * sector + 100, b"\xff")
        report = self.repair(path)
        self.assertEqual((report["problem_count"], len(report["problems"])), ("130", 100))
        self.remove("out.ty")
        self.assertIn("and 30 problems more", run("repair", path, self.path("out.ty")).stdout)

    def test_a_transaction_of_the_log(self):
        path = self.heap("commit")
        entries = [json.loads(line) for line in self.succeeds("log", "dump", "--json", path).splitlines()]
        positions = [int(one["position"]) for one in entries if one["kind"] == "transaction"]
        ring = 2 * PAGE
        self.change(path + "-log", ring + positions[1], b"\xff" * 512)
        report = self.repair(path)
        self.assertEqual((report["transactions"], report["live_blocks"]), ("1", "1"))
        self.assertFalse(report["whole"])

    def test_a_transaction_that_does_not_fit(self):
        path = self.heap("churn")
        whole = int(self.repair(path)["transactions"])
        self.remove("out.ty")
        heads, bits = PAGE, (64 << 20) // PAGE * 64
        self.change(path, PAGES_OFFSET + (64 << 20) - heads - bits, bytes(PAGE))  # no small block is live
        report = self.repair(path)
        self.assertEqual((report["whole"], report["damaged_tables"], report["repaired_kind"]),
                         (False, "1", "transactional"))
        self.assertLess(int(report["transactions"]), whole)
        first = int(report["first_unapplied"])
        done = [json.loads(line) for line in self.succeeds("log", "dump", "--json", path).splitlines()]
        lsns = [int(one["lsn"]) for one in done if one["kind"] == "transaction"]
        self.assertEqual(first - lsns[0], int(report["transactions"]))
        self.assertIn(f"take transaction {first} or one soon after it: it does not fit", "".join(report["problems"]))
        self.remove("out.ty")
        self.assertIn(f"not from number {first} on", run("repair", path, self.path("out.ty")).stdout)

    def test_random_damage(self):
        dice = random.Random(SEED)
        for how in ("linked", "die", "commit", "parts", "churn", "archive", "undo", "reserved", "atomic"):
            path = self.heap(how, how + ".ty")
            twin = self.copy_of(path, "twin.ty")
            for n in range(max(1, int(3 * float(os.environ.get("TAIYEN_EFFORT", "1"))))):
                damaged = self.copy_of(path, "damaged.ty")
                target = damaged + dice.choice([suffix for suffix in SUFFIXES if os.path.exists(damaged + suffix)])
                size = min(os.path.getsize(target), 1 << 30)
                tables = PAGES_OFFSET + (64 << 20) - 32 * PAGE  # the last pages: what is a block
                at = dice.choice([dice.randrange(size), dice.randrange(min(size, 4 * PAGE)), min(size - 1, tables +
                                  dice.randrange(32 * PAGE)),
                                  min(size - 1, PAGES_OFFSET + dice.randrange(64 * PAGE))])
                kind = dice.choice(["flip", "zero", "trash", "cut"])
                with self.subTest(seed=SEED, how=how, n=n, target=target, at=at, kind=kind):
                    if kind == "cut":
                        os.truncate(target, at)
                    else:
                        length = 1 if kind == "flip" else dice.choice([16, 512, PAGE, 64 * PAGE])
                        self.change(target, at, bytes(length) if kind == "zero" else dice.randbytes(length))
                    report = self.repair(damaged)
                    if report and how != "archive":  # its pages have no checksums
                        self.check_truth(twin, report)
                self.remove("out.ty")
                self.remove("damaged.ty")
            self.remove("twin.ty")


class Roomy(Repair):
    def test_what_was_never_written_takes_no_room(self):
        path = self.heap("roomy")
        self.assertTrue(self.repair(path)["whole"])
        self.assertLess(os.stat(self.path("out.ty")).st_blocks * 512, 64 << 20)
        self.assertTrue(self.differences(path)["same"])

    def test_what_is_cut_off_is_reported_in_few_words(self):
        path = self.heap("roomy")
        os.truncate(path, 20 << 20)
        report = self.repair(path)
        self.assertGreater(int(report["missing_pages"]), (5 << 28) // PAGE)
        self.assertLess(len(report["pages"]), 100)
        self.assertEqual(sum(int(each["count"]) for each in report["pages"]),
                         int(report["missing_pages"]) + int(report["damaged_pages"]))

    def test_a_log_is_as_large_as_before(self):
        path = self.heap("parts")
        self.repair(path)
        logs = [json.loads(run("log", "stat", "--json", each).stdout) for each in (path, self.path("out.ty"))]
        self.assertEqual(*[(len(log["log_streams"]), os.path.getsize(each + "-log"))
                           for log, each in zip(logs, (path, self.path("out.ty")))])


class Refused(Repair):
    def test_nothing_is_replaced(self):
        path = self.heap("close")
        for suffix in SUFFIXES:
            with open(self.path("out.ty") + suffix, "wb"):
                pass
            self.fails(2, "repair", path, self.path("out.ty"), says=("another name",) if suffix else ("exists",))
            os.remove(self.path("out.ty") + suffix)
        self.fails(2, "repair", path, path)

    def test_a_failure_leaves_nothing(self):
        path = self.path("atlas.ty")
        self.succeeds("create", path, "--kind", "transactional", "--limit", "64M", "--log-size", "128M")
        before = hashes(self.folder)
        limit = 80 << 20  # enough for the image, and not for its log
        result = run("repair", path, self.path("out.ty"),
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("-log at offset", result.stderr)
        self.assertEqual(hashes(self.folder), before)
        self.assertFalse(os.path.exists(self.path("out.ty-unfinished")))

    def test_what_is_named_as_repairs_own_stays(self):
        path, out = self.heap("die"), self.path("out.ty")
        for suffix in ("", "-creating", "-journal", "-journal-creating", "-log-creating"):
            with self.subTest(suffix):
                journal = out + "-unfinished" + suffix
                os.rename(path + "-journal", journal)
                before = hashes(self.folder)
                result = run("repair", "--journal", journal, path, out)
                self.assertEqual(result.returncode, 2 if suffix == "" else 0, result.stderr)
                if suffix == "":
                    self.assertIn("give the repaired heap another name", result.stderr)
                after = hashes(self.folder)
                self.assertEqual({name: after[name] for name in before}, before)
                self.remove("out.ty")
                os.rename(journal, path + "-journal")

    def test_two_at_once(self):
        path, out = self.heap("churn"), self.path("out.ty")
        with subprocess.Popen([support.TAIYEN, "repair", path, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as first:
            while not os.path.exists(out + "-unfinished") and first.poll() is None:
                pass
            second = run("repair", path, out)  # the first one is at work, or has ended
            said = first.communicate(timeout=120)[1]
        self.assertEqual((first.returncode, second.returncode), (0, 2), said + second.stderr)
        self.assertRegex(second.stderr, "another repair is at work there|move this file away")
        self.succeeds("verify", out)

    def repairs_in_vain(self, path, out):
        """What repair says when a file gets its name meanwhile: while it stands still, not having ended. None: it
        had."""
        with subprocess.Popen([support.TAIYEN, "repair", path, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as repairs:
            while not os.path.exists(out + "-unfinished") and repairs.poll() is None:
                pass
            repairs.send_signal(signal.SIGSTOP)
            is_early = repairs.poll() is None and os.path.exists(out + "-unfinished")
            if is_early:
                with open(out, "xb") as file:
                    file.write(b"another's")
            repairs.send_signal(signal.SIGCONT)
            said = repairs.communicate(timeout=120)[1]
        if is_early:
            self.assertEqual(repairs.returncode, 2, said)
        return said if is_early else None

    def test_what_has_come_meanwhile(self):
        path, out = self.heap("churn"), self.path("out.ty")
        while (said := self.repairs_in_vain(path, out)) is None:
            self.remove("out.ty")
        self.assertIn("exists", said)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), b"another's")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("out.ty")], ["out.ty"])

    def test_what_is_no_heap(self):
        with open(self.path("no.ty"), "wb") as file:
            file.write(b"no heap" * 5000)
        self.fails(2, "repair", self.path("no.ty"), self.path("out.ty"), says=("no.ty",))
        self.fails(2, "repair", self.path("none.ty"), self.path("out.ty"), says=("none.ty",))
        with open(self.path("empty.ty"), "wb"):
            pass
        self.fails(2, "repair", self.path("empty.ty"), self.path("out.ty"))


if __name__ == "__main__":
    support.main()
