#!/usr/bin/env python3
"""Goal: `taiyen resolve` reports a transaction in doubt, and resolves it as the caller says. Method: heaps of make_heap
whose last transaction is prepared.

    tests/cli/test_resolve.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json

import support
from support import CliTest, run


class Doubt(CliTest):
    def test_reports(self):
        sound, heap = self.heap("commit", "sound.ty"), self.heap("prepared")
        self.assertIn("nothing is in doubt", self.succeeds("resolve", sound))
        self.assertIn("nothing is in doubt", self.succeeds("resolve", self.heap("close", "plain.ty")))
        result = run("resolve", heap, sound)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"transaction \d+ is in doubt, described as 'order 7'")
        said = json.loads(run("resolve", "--json", heap).stdout)
        self.assertEqual((said["in_doubt"], said["description"]), (True, b"order 7".hex()))
        self.assertIn("prepared", self.succeeds("log", "dump", heap))
        self.assertIn("in doubt", self.succeeds("info", heap))

    def test_resolves(self):
        for word, outcome, holds in (("--commit", "committed", "2 blocks"), ("--rollback", "rolled back", "1 block")):
            heap = self.heap("prepared", word + ".ty")
            self.fails(1, "resolve", "--ask", heap, says=("in doubt",))
            self.assertRegex(self.succeeds("resolve", word, heap), rf"transaction \d+ is {outcome}")
            self.assertIn("nothing is in doubt", self.succeeds("resolve", word, heap))
            self.assertRegex(self.succeeds("verify", heap), rf" {holds}\n")

    def test_wrong_use(self):
        heap = self.heap("prepared")
        self.fails(2, "resolve", "--commit", "--rollback", heap, says=("give one of",))
        self.fails(2, "resolve", self.path("nowhere.ty"))


if __name__ == "__main__":
    support.main()
