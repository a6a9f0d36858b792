"""Goal: taiyen verify reports a heap's words that lead into code of the process that wrote it, and no others.
Method: a heap with addresses of a function, and one without; the lines, and the JSON text.

    test_code.py TAIYEN MAKE_HEAP
"""

import json
import re

import support
from support import CliTest


class CodeWords(CliTest):
    def verify(self, *arguments):
        result = support.run("verify", *arguments)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_the_first_words_and_their_number_are_reported(self):
        heap = self.heap("code")
        for option in ([], ["--quick"]):
            sound, *words, summary = self.verify(heap, *option).splitlines()
            self.assertIn("sound", sound)
            reported = [re.search(r"the word at (0x[0-9a-f]+), in the block of (\d+) bytes at (0x[0-9a-f]+), leads into "
                              r"(.+), at 0x[0-9a-f]+$", line) for line in words]
            self.assertEqual(len(reported), 8, words)
            self.assertNotIn(None, reported, words)
            first = int(reported[0].group(3), 16)
            self.assertEqual([int(one.group(1), 16) for one in reported], [first + 8 * n for n in range(8)])
            self.assertIn("10 words lead into code of a process that had the heap open", summary)
            self.assertIn("option code", summary)

    def test_json_has_the_number(self):
        self.assertEqual(json.loads(self.verify("--json", self.heap("code")))["code_words"], "10")

    def test_a_heap_without_such_words_is_sound_alone(self):
        heap = self.heap("linked")
        self.assertNotIn("code", self.succeeds("verify", heap))
        self.assertNotIn("code_words", json.loads(self.succeeds("verify", "--json", heap)))

    def test_a_tool_that_looks_changes_nothing(self):
        heap = self.heap("code")
        before = support.hashes(self.folder)
        first = self.verify(heap)
        self.assertEqual(self.verify(heap), first)
        self.assertEqual(support.hashes(self.folder), before)


if __name__ == "__main__":
    support.main()
