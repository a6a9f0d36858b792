#!/usr/bin/env python3
"""Goal: `taiyen publish`, `standby` and `promote` do what their help says: a second copy that takes over, and an old
primary that is refused. Method: heaps of make_heap and a nats-server of the test's own; skipped where there is none.

    tests/cli/test_standby.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import os
import re
import shutil
import signal
import subprocess
import unittest

import support
from support import CliTest, run

SERVER = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/bin")


@unittest.skipUnless(SERVER, "there is no nats-server")
class Standby(CliTest):
    def setUp(self):
        super().setUp()
        config = self.path("nats.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'listen: "127.0.0.1:-1"\njetstream {{ store_dir: "{self.path("store")}" }}\n')
        self.server = subprocess.Popen([SERVER, "-c", config], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_server)
        self.url = ""
        for line in self.server.stderr:
            found = re.search(r"Listening for client connections on (127\.0\.0\.1:\d+)", line)
            self.url = f"nats://{found[1]}" if found else self.url
            if "Server is ready" in line:
                break

    def end_server(self):
        self.server.kill()
        self.server.wait()
        self.server.stderr.close()

    def words(self, command, heap):
        return [command, "--server", self.url, heap, "atlas"]

    def content(self, heap):
        packed = subprocess.run([support.TAIYEN, "pack", "--codec", "none", heap, "-"], capture_output=True, check=True)
        return packed.stdout[128:]  # header and times left out

    def runs(self, command, heap):
        return subprocess.Popen([support.TAIYEN, *self.words(command, heap)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def ends(self, process, says):
        process.send_signal(signal.SIGINT)
        said, wrong = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, wrong)
        self.assertIn(says, said)

    def publish_base(self, heap):
        publisher = self.runs("publish", heap)
        self.assertIn("a base behind transaction", publisher.stdout.readline())
        self.ends(publisher, "published up to transaction")

    def test_there_and_back(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        self.publish_base(heap)
        standby = self.runs("standby", copy)
        while not os.path.exists(copy):
            self.assertIsNone(standby.poll())
        self.ends(standby, "took transactions up to")
        self.assertIn("is the primary of term 2", self.succeeds(*self.words("promote", copy)))
        self.assertEqual(self.content(heap), self.content(copy))
        refused = run(*self.words("publish", heap))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("another one is the primary since term 2", refused.stderr)
        self.fails(1, *self.words("publish", heap), "--base", says=("another heap is the primary",))
        self.publish_base(copy)

    def test_refusals(self):
        heap = self.heap("commit")
        self.fails(2, "publish", "--server", "nats://127.0.0.1:1", heap, "atlas", says=("server",))
        self.fails(2, "publish", "--server", self.url, heap, "a.b", says=("name",))
        self.fails(2, *self.words("publish", heap), "--base", says=("nobody has published",))
        self.fails(2, *self.words("standby", self.path("none.ty")), says=("no base",))
        self.fails(2, *self.words("publish", heap), "--base-age", "soon", says=("'soon'",))
        self.assertNotEqual(run(*self.words("promote", self.path("none.ty"))).returncode, 0)


if __name__ == "__main__":
    support.main()
