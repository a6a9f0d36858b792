#!/usr/bin/env python3
"""Goal: `taiyen` behaves as people expect of a Unix tool: exit codes, messages with remedies on stderr, results on
stdout, nothing changed on disk. Method: run it on heaps in every state, and on what is no heap.

    tests/cli/test_cli.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import hashlib
import json
import os
import pty
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TAIYEN = ""
MAKE_HEAP = ""
PAGES_OFFSET = 2 << 20  # where page 0 of the heap is in the image


def run(*arguments, **options):
    return subprocess.run([TAIYEN, *arguments], capture_output=True, text=True, check=False, timeout=120, **options)


def hashes(folder):
    state = {}
    for name in sorted(os.listdir(folder)):
        if os.path.isdir(os.path.join(folder, name)):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            state[name] = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else (
                hashlib.sha256(file.read()).hexdigest()
            )
    return state


def limit_files_to_8_kib():
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="taiyen-cli-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def heap(self, how, name="atlas.ty"):
        subprocess.run([MAKE_HEAP, self.path(name), how], check=True, timeout=60)
        return self.path(name)

    def fails(self, code, *arguments, says=()):
        """It fails with this code, says so on stderr as `taiyen: ...`, and nothing on disk changes."""
        before = hashes(self.folder)
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertTrue(result.stderr.startswith("taiyen: "), result.stderr)
        for word in says:
            self.assertIn(word, result.stderr)
        self.assertEqual(hashes(self.folder), before)
        return result

    def succeeds(self, *arguments):
        result = run(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout


class Log(CliTest):
    def test_stat(self):
        heap = self.heap("commit")
        before = hashes(self.folder)
        self.assertIn("3 transactions, numbers 1 to 3", self.succeeds("log", "stat", heap))
        stat = json.loads(self.succeeds("log", "stat", "--json", heap))
        self.assertEqual((stat["transactions"], stat["first_sequence"]), (3, 1))
        self.assertGreaterEqual(stat["operations"], 6)
        self.assertEqual(hashes(self.folder), before)

    def test_dump(self):
        heap = self.heap("commit")
        lines = self.succeeds("log", "dump", heap).splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("transaction ")]), 3)
        self.assertEqual(len([line for line in lines if line.startswith("  alloc 0x")]), 3)
        self.assertEqual(len([line for line in lines if line.endswith(" newest")]), 3)
        self.assertTrue(any(line.startswith("  data 0x") and "63636363" in line for line in lines), lines)

    def test_log_elsewhere(self):
        heap = self.heap("commit")
        os.rename(heap + "-log", self.path("elsewhere"))
        self.fails(2, "log", "stat", heap, says=("atlas.ty-log",))
        self.assertIn("3 transactions", self.succeeds("log", "stat", "--log", self.path("elsewhere"), heap))

    def test_without_what_an_open_needs(self):
        for suffix, says in (("-journal", "without its journal"), ("-log", "without its log")):
            heap = self.heap("commit", "without" + suffix)
            os.rename(heap + suffix, self.path("away"))
            for command in ("stat", "dump"):
                result = self.fails(1 if suffix == "-journal" else 2, "log", command, heap, says=(heap + suffix,))
                self.assertEqual(result.stdout, "")
            self.assertIn("would be refused: cannot open a heap " + says, self.succeeds("info", heap))
            info = json.loads(self.succeeds("info", "--json", heap))
            self.assertIn("would be refused: cannot open a heap " + says, info["open_text"])
            os.rename(self.path("away"), heap + suffix)

    def test_info_tells_of_the_log(self):
        heap = self.heap("commit")
        self.assertIn("replays 3 transactions from the log", self.succeeds("info", heap))
        self.assertIn("the log holds 3 transactions", self.succeeds("info", heap))
        info = json.loads(self.succeeds("info", "--json", heap))
        self.assertEqual((info["kind"], info["log_sequence"]), ("transactional", 0))
        self.assertIn("sound", self.succeeds("verify", heap))

    def test_what_has_no_log(self):
        self.fails(2, "log", "stat", self.heap("close"), "--log", self.heap("commit", "b.ty") + "-log", says=("has none",))
        for name in ("atlas.ty", "archive.ty"):
            heap = self.heap("archive" if name == "archive.ty" else "close", name)
            for command in ("stat", "dump"):
                self.fails(2, "log", command, heap, says=("has none", name))
        self.fails(2, "log", "dump", self.path("none.ty"))
        self.fails(2, "log")

    def test_damaged(self):
        heap = self.heap("commit")
        with open(heap + "-log", "r+b") as file:
            for slot in (0, 4096):  # one of the two would serve
                file.seek(slot + 8)
                file.write(b"\xff\xff\xff\xff\xff\xff")
        self.fails(2, "log", "stat", heap, says=("version",))


class FilesElsewhere(CliTest):
    """Every command takes the paths that an open takes, and says which option is missing."""

    COMMANDS = (["info"], ["info", "--classes"], ["verify"], ["verify", "--quick"], ["scrub"], ["log", "stat"],
                ["log", "dump"], ["map", "-o", "heap.svg"])

    def elsewhere(self, how):
        path = self.path(how + ".ty")
        os.makedirs(self.path("other"), exist_ok=True)
        self.options = {"--journal": self.path(f"other/{how}-j"), "--log": self.path(f"other/{how}-l")}
        subprocess.run([MAKE_HEAP, path, how, *self.options.values()], check=True, timeout=60)
        return path

    def run_at(self, path, command, **options):
        command = [self.path(word) if word == "heap.svg" else word for word in command]
        return run(*command, path, *[word for pair in options.items() for word in pair if word], cwd=self.folder)

    def test_all_commands_take_the_paths(self):
        for how in ("die", "commit"):
            path = self.elsewhere(how)
            for command in self.COMMANDS:
                if how == "die" and command[0] == "log":
                    continue
                with self.subTest(how=how, command=command):
                    result = self.run_at(path, command, **self.options)
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                    self.assertEqual(result.stderr, "")
        info = json.loads(self.run_at(path, ["info", "--json"], **self.options).stdout)
        self.assertIn("opens", info["open_text"])

    def test_a_missing_option_is_named(self):
        for how, missing in (("die", "--journal"), ("commit", "--journal"), ("commit", "--log")):
            path = self.elsewhere(how)
            given = {name: value for name, value in self.options.items() if name != missing}
            for command in self.COMMANDS:
                if command[0] == "log" and how == "die":
                    continue
                with self.subTest(how=how, missing=missing, command=command):
                    result = self.run_at(path, command, **given)
                    self.assertIn(missing, result.stdout + result.stderr)
                    self.assertIn(path + "-" + missing[2:], result.stdout + result.stderr)
                    self.assertEqual(result.returncode == 0, command[0] == "info" and len(command) == 1)


class Usage(CliTest):
    def test_control_characters_of_a_path_are_escaped(self):
        for how in ("close", "commit"):
            path = self.heap(how, how + "\n\x1b[2J.ty")
            shown = how + "\\x0a\\x1b[2J.ty"
            commands = [["info"], ["verify"], ["scrub"]] + ([["log", "stat"]] if how == "commit" else [])
            for command in commands:
                with self.subTest(command):
                    self.assertIn(shown, self.succeeds(*command, path))
            self.fails(2, "info", path + "-none", says=(shown + "-none",))
            self.fails(2, "map", path, "-o", path + ".pdf", says=(shown + ".pdf",))

    def test_help_and_version(self):
        self.assertRegex(self.succeeds("--version"), r"^taiyen \d+\.\d+\.\d+\n$")
        self.assertIn("verify", self.succeeds("--help"))
        self.assertIn("--json", self.succeeds("info", "--help"))

    def test_wrong_usage(self):
        for arguments in (
            [],
            ["no-such-command"],
            ["info"],
            ["info", "--no-such-option", "a.ty"],
            ["map", "a.ty"],
            ["map", "a.ty", "-o", "heap.pdf"],
            ["map", "a.ty", "-o", "heap.svg", "--width", "5"],
        ):
            with self.subTest(arguments):
                result = self.fails(2, *arguments, says=["--help"])
                self.assertEqual(result.stdout, "")

    def test_full_standard_output(self):
        path = self.heap("close")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([TAIYEN, "info", path], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("taiyen: cannot write", result.stderr)

    def test_standard_output_beyond_the_limit_of_a_file(self):
        path = self.heap("commit")
        with open(self.path("out"), "wb") as out:
            out.write(bytes(8192))
            out.flush()
            result = subprocess.run([TAIYEN, "log", "dump", path], stdout=out, stderr=subprocess.PIPE, text=True,
                                    check=False, preexec_fn=limit_files_to_8_kib)
        self.assertEqual(result.returncode, 2)
        self.assertIn("taiyen: cannot write the output: File too large", result.stderr)


class Refusals(CliTest):
    COMMANDS = (["info"], ["info", "--json"], ["scrub"], ["verify"], ["verify", "--quick"], ["map", "-o", "/tmp/never-written.svg"])

    def refused(self, code, path, says):
        for command in self.COMMANDS:
            with self.subTest(command):
                result = self.fails(code, *command, path, says=says)
                self.assertEqual(result.stdout, "")
        self.assertFalse(os.path.exists("/tmp/never-written.svg"))

    def test_missing_file(self):
        self.refused(2, self.path("none.ty"), ["none.ty"])

    def test_wrong_file(self):
        with open(self.path("diary.ty"), "w", encoding="utf-8") as file:
            file.write("Dear diary\n" * 1000)
        self.refused(2, self.path("diary.ty"), ["diary.ty"])

    def test_truncated_file(self):
        path = self.heap("close")
        os.truncate(path, PAGES_OFFSET + 4096)
        self.refused(1, path, ["atlas.ty"])

    def test_both_headers_damaged(self):
        path = self.heap("close")
        with open(path, "r+b") as file:
            for offset in (60, 4096 + 60):
                file.seek(offset)
                file.write(b"\xff\x00\xff")
        self.refused(1, path, ["atlas.ty"])

    def test_no_permission(self):
        path = self.heap("close")
        os.chmod(self.folder, 0o755)
        os.chmod(path, 0)
        as_nobody = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("root may read everything, and there is no setpriv")
            as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
            if subprocess.run([*as_nobody, TAIYEN, "--version"], capture_output=True, check=False).returncode:
                self.skipTest("nobody may not run the program in this folder")
        for command in self.COMMANDS:
            with self.subTest(command):
                result = subprocess.run(
                    [*as_nobody, TAIYEN, *command, path], capture_output=True, text=True, check=False
                )
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertTrue(result.stderr.startswith("taiyen: "), result.stderr)
                self.assertIn("atlas.ty", result.stderr)

    def test_heap_in_use(self):
        path = self.path("atlas.ty")
        with subprocess.Popen([MAKE_HEAP, path, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"open\n")
            self.fails(2, "verify", path, says=["atlas.ty"])
            self.fails(2, "map", path, "-o", self.path("heap.svg"), says=["atlas.ty"])
            self.assertTrue(json.loads(self.succeeds("info", path, "--json"))["in_use"])
            self.assertIn("open for writing now", self.succeeds("info", path))
            holder.stdin.close()
            self.assertEqual(holder.wait(60), 0)
        self.assertFalse(json.loads(self.succeeds("info", path, "--json"))["in_use"])


class Info(CliTest):
    def test_closed(self):
        path = self.heap("close")
        before = hashes(self.folder)
        words = self.succeeds("info", path)
        for word in ("snapshot heap", "identity", "64 MiB", "in order", "image", "journal"):
            self.assertIn(word, words)
        info = json.loads(self.succeeds("info", path, "--json"))
        self.assertEqual(info["kind"], "snapshot")
        self.assertEqual(info["limit_bytes"], 64 << 20)
        self.assertEqual(info["found"], "closed")
        self.assertTrue(info["closed"])
        self.assertEqual(info["epoch"], info["image_epoch"])
        self.assertEqual(len(info["identity"]), 32)
        self.assertEqual(int(info["base"], 16) % (64 << 20), 0)
        self.assertEqual(hashes(self.folder), before)

    def test_classes(self):
        path = self.heap("close")
        before = hashes(self.folder)
        self.assertNotIn("classes_in_use", json.loads(self.succeeds("info", path, "--json")))
        classes = json.loads(self.succeeds("info", path, "--json", "--classes"))["classes_in_use"]
        self.assertGreater(len(classes), 1)
        for one in classes:
            self.assertLessEqual(one["live_blocks"], one["block_count"])
            self.assertLessEqual(one["live_bytes"], one["span_bytes"])
            if one["block_bytes"]:
                self.assertEqual(one["live_bytes"], one["live_blocks"] * one["block_bytes"])
        words = self.succeeds("info", path, "--classes")
        self.assertIn(f"{classes[0]['block_bytes']:,}", words.splitlines()[-len(classes)])
        self.assertEqual(hashes(self.folder), before)

    def test_died(self):
        path = self.heap("die")
        info = json.loads(self.succeeds("info", path, "--json"))
        self.assertFalse(info["closed"])
        self.assertEqual(info["batches"], 2)
        self.assertEqual(info["epoch"], info["image_epoch"] + 2)
        self.assertGreater(info["batch_pages"], 0)
        self.assertEqual(info["found"], "died_applying")
        self.assertIn("2 batches", self.succeeds("info", path))

    def test_archive(self):
        path = self.heap("archive")
        info = json.loads(self.succeeds("info", path, "--json"))
        self.assertEqual(info["kind"], "archive")
        self.assertEqual(info["found"], "closed")


class Verify(CliTest):
    def test_sound_heaps(self):
        for how in ("close", "die", "archive"):
            with self.subTest(how):
                path = self.heap(how, how + ".ty")
                before = hashes(self.folder)
                self.assertIn("sound", self.succeeds("verify", path))
                self.assertIn("sound", self.succeeds("verify", path, "--quick"))
                self.assertEqual(hashes(self.folder), before)

    def test_says_which_page_is_damaged(self):
        path = self.heap("close")
        with open(path, "r+b") as file:
            file.seek(PAGES_OFFSET + 3 * 4096 + 100)
            byte = file.read(1)[0]
            file.seek(PAGES_OFFSET + 3 * 4096 + 100)
            file.write(bytes([byte ^ 16]))
        before = hashes(self.folder)
        result = run("verify", path)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("page 3", result.stdout)
        self.assertIn("atlas.ty: 1 problem found", result.stdout)
        self.assertEqual(hashes(self.folder), before)

    def test_shows_progress_on_a_terminal_only(self):
        path = self.heap("close")
        master, slave = pty.openpty()
        with subprocess.Popen([TAIYEN, "verify", path], stdout=subprocess.PIPE, stderr=slave) as program:
            os.close(slave)
            out, _ = program.communicate(timeout=60)
        shown = b""
        try:
            while chunk := os.read(master, 4096):
                shown += chunk
        except OSError:
            pass  # the terminal's other end is closed
        os.close(master)
        self.assertEqual(program.returncode, 0)
        self.assertIn(b"sound", out)
        self.assertIn(b"100 %", shown)


    def test_missing_pages(self):
        path = self.heap("close")
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            file.seek(PAGES_OFFSET + 2 * 4096)
            data = file.read(30 * 4096)
            file.seek(PAGES_OFFSET + 2 * 4096)
            file.write(bytes(30 * 4096))  # as a punched hole reads
        self.assertNotEqual(data, bytes(30 * 4096))
        for command in ("verify", "scrub"):
            result = run(command, path)
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            self.assertIn("page", result.stdout)
        subprocess.run(["fallocate", "--punch-hole", "--offset", str(PAGES_OFFSET + 2 * 4096), "--length", str(30 * 4096),
                        path], check=True)
        self.assertEqual(os.path.getsize(path), size)
        for command in ("verify", "scrub"):
            result = run(command, path)
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            self.assertIn("missing", result.stdout)

    def test_log(self):
        path = self.heap("commit")
        self.assertIn("sound", self.succeeds("scrub", path))
        told = []
        for offset, says in ((40, "log"), (4096 + 40, "log"), (8192 + 30, "log")):
            with open(path + "-log", "r+b") as file:
                file.seek(offset)
                byte = file.read(1)[0]
                file.seek(offset)
                file.write(bytes([byte ^ 1]))
                file.flush()
                result = run("scrub", path)
                told.append(result.stdout)
                self.assertEqual(result.returncode, 1, str(offset) + result.stdout + result.stderr)
                self.assertIn(says, result.stdout)
                file.seek(offset)
                file.write(bytes([byte]))
        self.assertIn("two headers is damaged", told[0] + told[1])  # the older one; the newer one is needed
        os.rename(path + "-log", path + "-gone")
        result = run("scrub", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--log", result.stdout)


class Map(CliTest):
    def test_svg_and_png(self):
        for how in ("close", "die", "archive"):
            with self.subTest(how):
                path = self.heap(how, how + ".ty")
                before = hashes(self.folder)
                self.assertEqual(self.succeeds("map", path, "-o", self.path("heap.svg")), "")
                self.succeeds("map", path, "--output", self.path("heap.PNG"), "--width", "900")
                root = xml.etree.ElementTree.parse(self.path("heap.svg")).getroot()
                self.assertTrue(root.tag.endswith("svg"))
                self.assertEqual(root.get("width"), "1200px")
                with open(self.path("heap.PNG"), "rb") as file:
                    head = file.read(24)
                self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
                self.assertEqual(int.from_bytes(head[16:20], "big"), 900)
                os.remove(self.path("heap.svg"))
                os.remove(self.path("heap.PNG"))
                self.assertEqual(hashes(self.folder), before)

    def test_output_not_writable(self):
        path = self.heap("close")
        self.fails(2, "map", path, "-o", self.path("no/such/folder/heap.svg"), says=["heap.svg"])
        os.mkdir(os.path.join(self.folder, "folder.svg"))
        result = run("map", path, "-o", self.path("folder.svg"))
        self.assertEqual(result.returncode, 2)
        self.assertIn("folder.svg", result.stderr)

    def test_the_heap_is_not_written_over(self):
        heap = self.heap("commit", "h.svg")
        os.rename(heap + "-journal", self.path("j.svg"))
        os.rename(heap + "-log", self.path("l.png"))
        os.mkdir(self.path("sub"))
        given = ["--journal", self.path("j.svg"), "--log", self.path("l.png")]
        for target, name in (("h.svg", "image"), ("j.svg", "journal"), ("l.png", "log")):
            os.symlink(self.path(target), self.path("soft-" + target))
            os.link(self.path(target), self.path("hard-" + target))
            os.symlink(self.path("hard-" + target), self.path("both-" + target))
            paths = ["soft-" + target, "hard-" + target, "both-" + target, target, "sub/../" + target]
            for path in paths:
                with self.subTest(path):
                    self.fails(2, "map", heap, *given, "-o", self.path(path), says=("the heap's " + name,))
        self.succeeds("verify", heap, *given)

    def test_a_log_that_is_not_there_is_not_made_a_picture(self):
        heap = self.heap("close")
        self.fails(2, "map", heap, "--log", self.path("log.png"), "-o", self.path("log.png"), says=("the heap's log",))

    def test_a_failure_leaves_the_old_picture(self):
        heap = self.heap("close")
        for name in ("new.svg", "old.svg", "old.png"):
            if name.startswith("old"):
                self.succeeds("map", heap, "-o", self.path(name), "--width", "700")
            before = hashes(self.folder)
            result = run("map", heap, "-o", self.path(name), preexec_fn=limit_files_to_8_kib)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("ulimit -f", result.stderr)
            self.assertEqual(hashes(self.folder), before)

    def test_a_replaced_picture_keeps_permissions_and_links(self):
        heap = self.heap("close")
        with open(self.path("mine.svg"), "w", encoding="ascii"):
            pass
        os.chmod(self.path("mine.svg"), 0o600)
        os.symlink("mine.svg", self.path("link.svg"))
        self.succeeds("map", heap, "-o", self.path("link.svg"))
        self.assertTrue(os.path.islink(self.path("link.svg")))
        self.assertGreater(os.path.getsize(self.path("mine.svg")), 1000)
        self.assertEqual(os.stat(self.path("mine.svg")).st_mode & 0o777, 0o600)

    def test_a_pipe_is_written_to(self):
        heap = self.heap("close")
        os.mkfifo(self.path("pipe.png"))
        with subprocess.Popen([TAIYEN, "map", heap, "-o", self.path("pipe.png")]) as program:
            with open(self.path("pipe.png"), "rb") as pipe:
                self.assertEqual(pipe.read()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(program.wait(60), 0)

    def test_full_disk(self):
        path = self.heap("close")
        os.symlink("/dev/full", self.path("full.png"))
        result = run("map", path, "-o", self.path("full.png"))
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("taiyen: "), result.stderr)


if __name__ == "__main__":
    TAIYEN, MAKE_HEAP = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
