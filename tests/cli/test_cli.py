#!/usr/bin/env python3
"""Goal: `taiyen` behaves as people expect of a Unix tool: exit codes, messages with remedies on stderr, results on
stdout, nothing changed on disk. Method: run it on heaps in every state, and on what is no heap.

    tests/cli/test_cli.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import pty
import resource
import shutil
import subprocess
import xml.etree.ElementTree

import support
from support import CliTest, hashes, run

PAGES_OFFSET = 2 << 20  # where page 0 of the heap is in the image


def limit_files_to_8_kib():
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


class Log(CliTest):
    def test_stat(self):
        heap = self.heap("commit")
        before = hashes(self.folder)
        self.assertIn("3 transactions, numbers 1 to 3", self.succeeds("log", "stat", heap))
        stat = json.loads(self.succeeds("log", "stat", "--json", heap))
        self.assertEqual((stat["transactions"], stat["first_lsn"]), ("3", "1"))
        self.assertGreaterEqual(int(stat["operations"]), 6)
        self.assertEqual(hashes(self.folder), before)

    def test_dump(self):
        heap = self.heap("commit")
        lines = self.succeeds("log", "dump", heap).splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("transaction ")]), 3)
        self.assertEqual(len([line for line in lines if line.startswith("  alloc 0x")]), 3)
        self.assertEqual(len([line for line in lines if line.endswith(" newest")]), 3)
        self.assertTrue(any(line.startswith("  data 0x") and "63636363" in line for line in lines), lines)

    def test_streams(self):
        heap = self.heap("parts")
        words = self.succeeds("log", "stat", heap)
        self.assertIn("3 transactions, numbers 1 to 3", words)
        self.assertRegex(words, r"\n  log stream 0: \d+ KiB in use, 3 transactions, \d+ bytes of records\n")
        self.assertIn("\n  log stream 1: 0 bytes in use, 0 transactions, 0 bytes of records\n", words)
        stat = json.loads(self.succeeds("log", "stat", "--json", heap))
        self.assertEqual((stat["format_version"], stat["left_out"]), (1, "0"))
        self.assertEqual([one["transactions"] for one in stat["log_streams"]], ["3", "0"])
        self.assertEqual(stat["log_streams"][0]["end_position"], stat["end_position"])
        lines = [one for one in self.succeeds("log", "dump", heap).splitlines() if one.startswith("transaction ")]
        self.assertTrue(len(lines) == 3 and all(one.endswith(" in log stream 0") for one in lines), lines)
        entries = [json.loads(one) for one in self.succeeds("log", "dump", "--json", heap).splitlines()]
        reported = [(one["log_stream"], one["independent"]) for one in entries if one["kind"] == "transaction"]
        self.assertEqual(reported, [("0", False)] * 3)
        one_ring = self.heap("commit", "one.ty")
        self.assertNotIn("log stream", self.succeeds("log", "stat", one_ring) + self.succeeds("log", "dump", one_ring))
        self.assertEqual(len(json.loads(self.succeeds("log", "stat", "--json", one_ring))["log_streams"]), 1)

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

    def test_info_reports_the_log(self):
        heap = self.heap("commit")
        self.assertIn("replays 3 transactions from the log", self.succeeds("info", heap))
        self.assertIn("the log holds 3 transactions", self.succeeds("info", heap))
        info = json.loads(self.succeeds("info", "--json", heap))
        self.assertEqual((info["kind"], info["log_lsn"]), ("transactional", "0"))
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

    COMMANDS = (["info"], ["stat"], ["verify"], ["verify", "--quick"], ["scrub"], ["log", "stat"],
                ["log", "dump"], ["map", "-o", "heap.svg"])

    def elsewhere(self, how):
        path = self.path(how + ".ty")
        os.makedirs(self.path("other"), exist_ok=True)
        self.options = {"--journal": self.path(f"other/{how}-j"), "--log": self.path(f"other/{how}-l")}
        subprocess.run([support.MAKE_HEAP, path, how, *self.options.values()], check=True, timeout=60)
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

    def test_commands_that_make_another_file_take_them_too(self):
        path = self.elsewhere("commit")
        for command in ("repair", "copy", "pack", "convert", "ship"):
            with self.subTest(command):
                more = {"convert": ["--kind", "archive"], "ship": ["--once"]}.get(command, [])
                words = [word for pair in self.options.items() for word in pair]
                result = run(command, path, self.path("out-" + command), *more, *words)
                self.assertEqual(result.returncode, 0, result.stderr)

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
            self.fails(2, "info", path + "-none", says=(how + "??[2J.ty-none",))  # the library's text
            self.fails(2, "map", path, "-o", path + ".pdf", says=(shown + ".pdf",))

    COMMANDS = ("info", "stat", "verify", "scrub", "map", "log stat", "log dump", "version", "help")

    def test_characters_that_a_terminal_obeys_are_escaped(self):
        for name, shown in (("c\x9b2J.ty", "c\\xc2\\x9b2J.ty"), ("r\u202ecba.ty", "r\\xe2\\x80\\xaecba.ty"),
                            ("ä€\u2065.ty", "ä€\u2065.ty")):
            path = self.heap("close", name)
            for command in ("info", "verify"):
                self.assertIn(os.path.join(self.folder, shown), self.succeeds(command, path))

    def test_help_fits_a_terminal(self):
        for line in self.succeeds("help").splitlines():
            self.assertLessEqual(len(line), 80, line)
        names = [line.split()[0] for line in self.succeeds("help").splitlines() if line.startswith("  ")]
        self.assertGreater(len(names), 15)
        for name in names:
            for line in self.succeeds("help", name).splitlines():
                self.assertLessEqual(len(line), 80, (name, line))

    def test_version(self):
        for words in (["--version"], ["version"]):
            self.assertRegex(self.succeeds(*words), r"^taiyen \d+\.\d+\.\d+\n$")
        self.assertRegex(json.loads(self.succeeds("version", "--json"))["version"], r"^\d+\.\d+\.\d+$")

    def test_help(self):
        text = self.succeeds("help")
        for words in (["--help"], ["-h"]):
            self.assertEqual(self.succeeds(*words), text)
        for code in ("0, all is fine", "1, a heap has problems", "2, wrong usage"):
            self.assertIn(code, text)
        for command in self.COMMANDS:
            with self.subTest(command):
                self.assertIn(f"\n  {command} ", text)
                words = command.split()
                of_it = self.succeeds("help", *words)
                self.assertTrue(of_it.startswith(f"Usage: taiyen {command}"), of_it)
                self.assertLess(max(map(len, (text + of_it).splitlines())), 80)
                for more in (["--help"], ["-h"]):
                    self.assertEqual(self.succeeds(*words, *more), of_it)
                self.assertEqual(self.succeeds("--help", *words), of_it)
                if command != "help":
                    self.assertIn("--json", of_it)

    def test_help_of_several_commands(self):
        text = self.succeeds("help", "log")
        self.assertEqual(text, self.succeeds("help", "log", "stat") + "\n" + self.succeeds("help", "log", "dump"))
        self.assertEqual(self.succeeds("log", "--help"), text)

    def test_help_needs_nothing_else_to_be_right(self):
        self.assertEqual(self.succeeds("map", "none.ty", "and.ty", "--help"), self.succeeds("help", "map"))

    def wrong(self, words, says, see):
        with self.subTest(words):
            result = self.fails(2, *words)
            self.assertEqual((result.stdout, result.stderr), ("", f"taiyen: {says}; see taiyen help{see}\n"))

    def test_words_that_are_not_known(self):
        self.wrong(["foo"], "there is no command 'foo'", "")
        self.wrong(["help", "foo"], "there is no command 'foo'", "")
        self.wrong(["\x1b[2J"], "there is no command '\\x1b[2J'", "")
        self.wrong(["log", "foo", "a.ty"], "there is no command 'log foo'", " log")
        self.wrong(["help", "log", "foo"], "there is no command 'log foo'", " log")
        self.wrong(["help", "info", "foo"], "there is no command 'info foo'", " info")
        self.wrong(["--foo"], "there is no option '--foo' before a command", "")
        self.wrong(["--json", "info", "a.ty"], "there is no option '--json' before a command", "")
        self.wrong(["info", "--foo", "a.ty"], "'info' has no option '--foo'", " info")
        self.wrong(["info", "a.ty", "-x"], "'info' has no option '-x'", " info")
        self.wrong(["info", "--foo=3", "a.ty"], "'info' has no option '--foo'", " info")
        self.wrong(["verify", "a.ty", "--watch"], "'verify' has no option '--watch'", " verify")
        self.wrong(["log", "dump", "a.ty", "--quick"], "'log dump' has no option '--quick'", " log dump")

    def test_words_that_are_missing(self):
        self.wrong([], "a command is missing", "")
        for words in (["log"], ["log", "--json", "a.ty"]):
            self.wrong(words, "a word is missing after 'log': say 'log stat' or 'log dump'", " log")
        for command in self.COMMANDS[:7]:
            more = ["--json"] if command == "map" else []
            self.wrong([*command.split(), *more], f"'{command}' needs a FILE", " " + command)
        self.wrong(["info", "a.ty", ""], "a FILE of 'info' is empty", " info")
        self.wrong(["info", "a.ty", "--journal"], "the option '--journal' needs a PATH", " info")
        self.wrong(["info", "a.ty", "--log="], "the PATH of the option '--log' is empty", " info")
        self.wrong(["info", "--log=", "--json", "a.ty"], "the PATH of the option '--log' is empty", " info")
        self.wrong(["map", "a.ty", "-o"], "the option '-o' needs a PICTURE", " map")
        self.wrong(["map", "a.ty"], "'map' needs --output PICTURE, or --json", " map")

    def test_words_that_are_too_many(self):
        self.wrong(["map", "a.ty", "b.ty", "-o", "a.svg"], "'map' takes FILE alone, and was given 'b.ty' too", " map")
        self.wrong(["version", "1"], "'version' takes no operand, and was given '1'", " version")
        self.wrong(["info", "--json=yes", "a.ty"], "the option '--json' takes no value, and has 'yes'", " info")
        for option in ("--journal", "--log"):
            self.wrong(["info", "a.ty", "b.ty", option, "c"],
                       "--journal and --log name files of one heap: give 'info' one FILE with them", " info")

    def test_values_that_are_wrong(self):
        self.wrong(["map", "a.ty", "-o", "heap.pdf"], "the picture 'heap.pdf' does not end in .svg or .png", " map")
        for width in ("5", "8001", "wide", "700px", "-700", "700.0", "99999999999"):
            self.wrong(["map", "a.ty", "-o", "heap.svg", "--width", width],
                       f"the option '--width' takes 600 to 8000 pixels, and was given '{width}'", " map")

    def test_options_in_each_form(self):
        path = self.heap("close")
        shutil.move(path + "-journal", self.path("j"))
        shown = self.succeeds("info", path, "--journal", self.path("j"))
        self.assertIn("opens at once", shown)
        self.assertEqual(self.succeeds("info", "--journal=" + self.path("j"), path), shown)
        os.rename(path, self.path("-a.ty"))
        for words in (["info", "--", "-a.ty"], ["info", "--journal", "j", "--", "-a.ty"]):
            result = run(*words, cwd=self.folder)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith("-a.ty: snapshot heap"), result.stdout)

    def test_a_file_may_have_any_name(self):
        for name in ("info", "log", "{}", "[]", "a=b.ty", "%%", "++", "--help"):
            self.heap("close", name)
            for words in ([name], ["--", name]) if name != "--help" else (["--", name],):
                result = run("info", *words, cwd=self.folder)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertTrue(result.stdout.startswith(name + ": snapshot heap"), result.stdout)
        result = run("verify", "info", "--", "log", "--help", cwd=self.folder)
        self.assertEqual((result.returncode, result.stdout.count("sound;")), (0, 3), result.stderr)

    def test_help_runs_nothing(self):
        heap = self.heap("close")
        for words in (["resize", heap, "--limit", "65G", "--log"], ["create", "--"], ["create", self.path("x"), "--log"]):
            before = hashes(self.folder)
            result = run("help", *words, cwd=self.folder)
            self.assertTrue(result.returncode == 2 or result.stdout.startswith("Usage: taiyen create"), result.stdout)
            self.assertEqual(hashes(self.folder), before)

    def test_full_standard_output(self):
        path = self.heap("close")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([support.TAIYEN, "info", path], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("taiyen: cannot write", result.stderr)

    def test_standard_output_beyond_the_limit_of_a_file(self):
        path = self.heap("commit")
        with open(self.path("out"), "wb") as out:
            out.write(bytes(8192))
            out.flush()
            result = subprocess.run([support.TAIYEN, "log", "dump", path], stdout=out, stderr=subprocess.PIPE, text=True,
                                    check=False, preexec_fn=limit_files_to_8_kib)
        self.assertEqual(result.returncode, 2)
        self.assertIn("taiyen: cannot write the output: File too large", result.stderr)


class SeveralFiles(CliTest):
    """Each file's result, whatever came of the one before; the highest exit code."""

    def setUp(self):
        super().setUp()
        self.sound = self.heap("close", "sound.ty")
        self.logged = self.heap("commit", "logged.ty")
        self.damaged = self.heap("close", "damaged.ty")
        with open(self.damaged, "r+b") as file:
            file.seek(PAGES_OFFSET + 3 * 4096 + 100)
            file.write(b"\x55\xaa\x55")
        self.missing = self.path("missing.ty")

    def test_each_files_result(self):
        result = run("info", self.sound, self.missing, self.logged)
        self.assertEqual(result.returncode, 2)
        self.assertIn("sound.ty: snapshot heap", result.stdout)
        self.assertIn("logged.ty: transactional heap", result.stdout)
        self.assertRegex(result.stderr, r"\Ataiyen: cannot .*missing\.ty.*\n\Z")

    def test_the_highest_exit_code(self):
        for paths, code in (([self.sound, self.logged], 0), ([self.damaged, self.sound], 1),
                            ([self.missing, self.sound], 2), ([self.missing, self.damaged, self.sound], 2),
                            ([self.damaged, self.missing], 2)):
            for command in ("verify", "scrub"):
                with self.subTest(paths=paths, command=command):
                    result = run(command, *paths)
                    self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                    for path, says in ((self.sound, "sound;"), (self.damaged, "1 problem found")):
                        self.assertEqual(f"{path}: {says}" in result.stdout, path in paths, result.stdout)

    def test_a_document_for_each_file(self):
        paths = [self.damaged, self.missing, self.sound]
        result = run("verify", "--json", *paths)
        self.assertEqual(result.returncode, 2)
        damaged, missing, sound = map(json.loads, result.stdout.splitlines())
        self.assertEqual([one["path"] for one in (damaged, missing, sound)], paths)
        self.assertFalse(damaged["sound"])
        self.assertEqual(len(damaged["problems"]), 1)
        self.assertIn("page 3", damaged["problems"][0])
        self.assertEqual(set(missing), {"path", "error"})
        self.assertEqual(missing["error"]["status"], "TY_E_NOT_FOUND")
        self.assertEqual(result.stderr, f"taiyen: {missing['error']['text']}\n")
        self.assertEqual((sound["sound"], sound["problems"], sound["live_blocks"]), (True, [], "688"))
        self.assertNotIn("error", damaged)

    def test_logs(self):
        another = self.heap("commit", "another.ty")
        words = self.succeeds("log", "stat", self.logged, another)
        self.assertEqual(words.count("3 transactions"), 2)
        words = self.succeeds("log", "dump", self.logged, another)
        self.assertTrue(words.startswith(f"{self.logged}:\ntransaction 1 "), words)
        self.assertIn(f"\n{another}:\ntransaction 1 ", words)
        self.assertEqual(words, f"{self.logged}:\n{self.succeeds('log', 'dump', self.logged)}"
                                f"{another}:\n{self.succeeds('log', 'dump', another)}")


def whole_numbers(name, value):
    """(name, number) of each whole number in a document."""
    if isinstance(value, dict):
        return [pair for inner, one in value.items() for pair in whole_numbers(inner, one)]
    if isinstance(value, list):
        return [pair for one in value for pair in whole_numbers(name, one)]
    return [(name, value)] if type(value) is int else []


class Json(CliTest):
    """Every command that prints data has it as JSON, one document a line, and each wide number as a string."""

    def documents(self, *words):
        return [json.loads(line) for line in self.succeeds(*words).splitlines()]

    def test_each_command(self):
        path = self.heap("commit")
        for words in (["info"], ["stat"], ["verify"], ["verify", "--quick"], ["scrub"], ["map"],
                      ["map", "-o", self.path("heap.svg")], ["log", "stat"], ["log", "dump"]):
            with self.subTest(words):
                documents = self.documents(*words, path, "--json")
                self.assertEqual(len(documents), 12 if words == ["log", "dump"] else 1)
                for document in documents:
                    self.assertEqual(document["path"], path)
                    narrow = {("format_version", 1), ("page_bytes", 4096), ("block_bytes", 4096)}
                    self.assertLessEqual(set(whole_numbers("", document)), narrow)

    def test_what_cannot_be_read_has_a_document(self):
        for command in ("info", "stat", "verify", "scrub", "map", "dump", "log stat", "log dump", "resolve", "diff"):
            with self.subTest(command=command):
                result = run(*command.split(), self.path("missing.ty"), "--json")
                self.assertEqual(result.returncode, 2)
                self.assertEqual(json.loads(result.stdout)["error"]["status"], "TY_E_NOT_FOUND")

    def test_numbers_beyond_doubles(self):
        path = self.heap("commit")
        info, = self.documents("info", "--json", path)
        stat, = self.documents("log", "stat", "--json", path)
        self.assertEqual(info["log_identity"], stat["log_identity"])
        for name in ("log_identity", "epoch", "limit_bytes", "created_unix_s"):
            self.assertRegex(info[name], r"^\d+$")
        self.assertRegex(info["base"], r"^0x[0-9a-f]+$")

    def test_entries_of_a_log(self):
        path = self.heap("commit")
        entries = self.documents("log", "dump", "--json", path)
        base = int(self.documents("info", "--json", path)[0]["base"], 16)
        self.assertEqual([one["kind"] for one in entries], ["transaction", "alloc", "root", "data"] * 3)
        self.assertEqual([one["lsn"] for one in entries], ["1"] * 4 + ["2"] * 4 + ["3"] * 4)
        self.assertEqual([one["name"] for one in entries if one["kind"] == "root"], ["newest"] * 3)
        self.assertEqual([one["bytes"] for one in entries if one["kind"] == "data"], ["61" * 8, "62" * 8, "63" * 8])
        for one in entries:
            if one["kind"] != "transaction":
                self.assertTrue(base < int(one["address"], 16) < base + (64 << 20), one)

    def test_long_entries_are_whole(self):
        path = self.heap("long")
        dumped = self.succeeds("log", "dump", path)
        self.assertIn("61" * 32 + "...\n", dumped)
        data = [one for one in self.documents("log", "dump", "--json", path) if one["kind"] == "data"]
        self.assertEqual("".join(one["bytes"] for one in data), "61" * 104)
        self.assertEqual(sum(int(one["size_bytes"]) for one in data), 104)

    def test_figures_of_a_map(self):
        path = self.heap("die")
        figures, = self.documents("map", "--json", path)
        info, = self.documents("stat", "--json", path)
        for name in ("path", "kind", "base", "limit_bytes", "classes_in_use"):
            self.assertEqual(figures[name], info[name])
        self.assertEqual(int(figures["live_blocks"]), sum(int(one["live_blocks"]) for one in figures["classes_in_use"]))
        self.assertGreater(int(figures["waiting_pages"]), 0)
        self.assertNotIn("picture", figures)
        drawn, = self.documents("map", "--json", path, "-o", self.path("heap.svg"))
        self.assertEqual(drawn, {**figures, "picture": self.path("heap.svg")})
        self.assertTrue(os.path.exists(self.path("heap.svg")))


class Singular(CliTest):
    def test_one_of_a_thing(self):
        path = self.heap("one")
        self.assertIn("replay    1 transaction, number 1; ", self.succeeds("log", "stat", path))
        self.assertIn("1 changed piece of data", self.succeeds("log", "stat", path))
        self.assertIn("1 block", self.succeeds("verify", path))
        self.assertIn("the log holds 1 transaction after", self.succeeds("info", path))
        self.assertIn("replays 1 transaction from the log", self.succeeds("info", path))
        for command in (["info"], ["stat"], ["verify"], ["log", "stat"], ["log", "dump"]):
            self.assertNotRegex(self.succeeds(*command, path), r"(?<![\d.,])1 [a-z]+s\b")


class Refusals(CliTest):
    COMMANDS = (["info"], ["info", "--json"], ["scrub"], ["scrub", "--json"], ["verify"],
                ["verify", "--json"], ["verify", "--quick"], ["map", "-o", "/tmp/never-written.svg"], ["map", "--json"])

    def refused(self, code, path, says):
        for command in self.COMMANDS:
            with self.subTest(command):
                result = self.fails(code, *command, path, says=says)
                if "--json" in command:
                    refusal = json.loads(result.stdout)
                    self.assertEqual(refusal["path"], path)
                    self.assertEqual(result.stderr, f"taiyen: {refusal['error']['text']}\n")
                else:
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
        as_nobody = self.as_nobody()
        os.chmod(path, 0)
        for command in self.COMMANDS:
            with self.subTest(command):
                result = subprocess.run(
                    [*as_nobody, support.TAIYEN, *command, path], capture_output=True, text=True, check=False
                )
                self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
                self.assertTrue(result.stderr.startswith("taiyen: "), result.stderr)
                self.assertIn("atlas.ty", result.stderr)

    def test_heap_in_use(self):
        path = self.path("atlas.ty")
        with subprocess.Popen([support.MAKE_HEAP, path, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"open\n")
            self.fails(2, "verify", path, says=["atlas.ty"])
            self.succeeds("map", path, "-o", self.path("heap.svg"))
            self.succeeds("pack", path, self.path("heap.typ"))
            self.succeeds("copy", path, self.path("copy.ty"))
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
        self.assertEqual(info["limit_bytes"], str(64 << 20))
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
        classes = json.loads(self.succeeds("stat", path, "--json"))["classes_in_use"]
        self.assertGreater(len(classes), 1)
        for one in classes:
            one = {name: int(value) for name, value in one.items()}
            self.assertLessEqual(one["live_blocks"], one["block_count"])
            self.assertLessEqual(one["live_bytes"], one["span_bytes"])
            if one["block_bytes"]:
                self.assertEqual(one["live_bytes"], one["live_blocks"] * one["block_bytes"])
        words = self.succeeds("stat", path)
        self.assertIn(f"{int(classes[0]['block_bytes']):,}", words.splitlines()[-len(classes)])
        self.assertEqual(hashes(self.folder), before)

    def test_died(self):
        path = self.heap("die")
        info = json.loads(self.succeeds("info", path, "--json"))
        self.assertFalse(info["closed"])
        self.assertEqual(info["batches"], "2")
        self.assertEqual(int(info["epoch"]), int(info["image_epoch"]) + 2)
        self.assertGreater(int(info["batch_pages"]), 0)
        self.assertEqual(info["found"], "crashed_checkpointing")
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
        with subprocess.Popen([support.TAIYEN, "verify", path], stdout=subprocess.PIPE, stderr=slave) as program:
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
        reported = []
        for offset, says in ((40, "log"), (4096 + 40, "log"), (8192 + 30, "log")):
            with open(path + "-log", "r+b") as file:
                file.seek(offset)
                byte = file.read(1)[0]
                file.seek(offset)
                file.write(bytes([byte ^ 1]))
                file.flush()
                result = run("scrub", path)
                reported.append(result.stdout)
                self.assertEqual(result.returncode, 1, str(offset) + result.stdout + result.stderr)
                self.assertIn(says, result.stdout)
                file.seek(offset)
                file.write(bytes([byte]))
        self.assertIn("two headers is damaged", reported[0] + reported[1])  # the older one; the newer one is needed
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

    def test_a_name_that_is_no_utf8_is_drawn(self):
        """cairo drew nothing from the first such text on, and the picture was empty."""
        name = os.fsencode(self.folder) + b"/\xff.ty"
        os.rename(self.heap("snapshot"), name)
        for end in (b"-journal", b"-log"):
            if os.path.exists(os.fsencode(self.path("atlas.ty")) + end):
                os.rename(os.fsencode(self.path("atlas.ty")) + end, name + end)
        self.succeeds("map", name, "-o", self.path("picture.svg"))
        self.assertGreater(os.path.getsize(self.path("picture.svg")), 10000)

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
        with subprocess.Popen([support.TAIYEN, "map", heap, "-o", self.path("pipe.png")]) as program:
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
    support.main()
