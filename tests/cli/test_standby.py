#!/usr/bin/env python3
"""Goal: `taiyen publish`, `standby` and `promote` do what their help says: a second copy that takes over, and an old
primary that is refused. Method: heaps of make_heap, and a nats-server or a broker of Kafka of the test's own; skipped
where there is none (Kafka: make test-kafka).

    tests/cli/test_standby.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest

import support
from support import CliTest, run

JARS = os.environ.get("TAIYEN_KAFKA")
CLUSTER = "dGFpeWVuLXRlc3QtbG9nIQ"
SERVER = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/bin")


class OverAnEngine:
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

    def wait_for_standby(self, process, copy):
        """Until it has the heap open: before, an interrupt ends it at once."""
        while not os.path.exists(copy) or not json.loads(self.succeeds("info", "--json", copy))["in_use"]:
            self.assertIsNone(process.poll())

    def publish_base(self, heap):
        publisher = self.runs("publish", heap)
        self.assertIn("a base behind transaction", publisher.stdout.readline())
        self.ends(publisher, "published up to transaction")

    def test_there_and_back(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        self.publish_base(heap)
        standby = self.runs("standby", copy)
        self.wait_for_standby(standby, copy)
        self.ends(standby, "took transactions up to")
        self.assertIn("is the primary of term 2", self.succeeds(*self.words("promote", copy)))
        self.assertIn("is the primary already", self.succeeds(*self.words("promote", copy)))
        refused = run(*self.words("standby", copy))
        self.assertEqual(refused.returncode, 2)
        self.assertIn("is the primary, since term 2", refused.stderr)
        self.assertEqual(self.content(heap), self.content(copy))
        refused = run(*self.words("publish", heap))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("another one is the primary since term 2", refused.stderr)
        self.fails(1, *self.words("publish", heap), "--base", says=("another heap is the primary",))
        self.publish_base(copy)

    def test_takes_over_when_the_publisher_is_killed(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        publisher = self.runs("publish", heap)
        self.assertIn("a base behind transaction", publisher.stdout.readline())
        standby = subprocess.Popen([support.TAIYEN, *self.words("standby", copy), "--take-over-after", "5s"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not os.path.exists(copy + "-standby"):
            self.assertIsNone(standby.poll())
        with self.assertRaises(subprocess.TimeoutExpired):
            standby.wait(timeout=6)  # the publisher lives
        publisher.kill()
        publisher.communicate()
        said, wrong = standby.communicate(timeout=60)
        self.assertEqual(standby.returncode, 0, wrong)
        self.assertIn("is the primary of term 2", said)
        again = self.succeeds(*self.words("standby", copy), "--take-over-after", "5s")  # as a service does
        self.assertIn("is the primary already", again)
        self.assertEqual(self.content(heap), self.content(copy))
        self.fails(1, *self.words("publish", heap), says=("another one is the primary",))

    def test_an_interrupt_is_no_takeover(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        self.publish_base(heap)
        standby = subprocess.Popen([support.TAIYEN, *self.words("standby", copy), "--take-over-after", "1h"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for_standby(standby, copy)
        standby.send_signal(signal.SIGINT)
        said, wrong = standby.communicate(timeout=60)
        self.assertEqual(standby.returncode, 1, wrong)
        self.assertIn("took transactions up to", said)

    def test_refusals(self):
        heap = self.heap("commit")
        self.fails(2, "publish", "--server", self.nobody, heap, "atlas", says=(self.says_nobody,))
        self.fails(2, "publish", "--server", self.url, heap, "a.b", says=("name",))
        self.fails(2, *self.words("publish", heap), "--base", says=("nobody has published",))
        self.fails(2, *self.words("standby", self.path("none.ty")), says=("no base",))
        self.fails(2, *self.words("publish", heap), "--base-age", "soon", says=("'soon'",))
        self.assertNotEqual(run(*self.words("promote", self.path("none.ty"))).returncode, 0)
        self.fails(2, "publish", "--server", "http://127.0.0.1:1", heap, "atlas", says=("nats://HOST:PORT",))
        self.fails(2, *self.words("publish", heap), "--replicas", "none", says=("'none'",))
        self.fails(2, *self.words("standby", self.path("none.ty")), "--take-over-after", "1s", says=("2s",))


@unittest.skipUnless(SERVER, "there is no nats-server")
class Standby(OverAnEngine, CliTest):
    nobody, says_nobody = "nats://127.0.0.1:1", "server"

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

    def test_settings_of_other_engines(self):
        self.fails(2, *self.words("publish", self.heap("commit")), "--flushed", says=("sync_interval",))


@unittest.skipUnless(JARS, "there is no Kafka (make test-kafka)")
class StandbyOnKafka(OverAnEngine, CliTest):
    nobody, says_nobody = "kafka://127.0.0.1:1", "brokers"

    def java(self, *words):
        return subprocess.Popen(["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", JARS + "/*", *words],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        port, controller = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        settings = self.path("kafka.properties")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={self.path("kafka")}
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=2097152
""")
        self.assertEqual(self.java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", settings).wait(), 0)
        self.server = self.java("kafka.Kafka", settings)
        self.addCleanup(self.end_server)
        self.url = f"kafka://127.0.0.1:{port}"
        while "no base" not in run(*self.words("standby", self.path("none.ty"))).stderr:
            self.assertIsNone(self.server.poll())

    def end_server(self):
        self.server.kill()
        self.server.wait()


if __name__ == "__main__":
    support.main()
