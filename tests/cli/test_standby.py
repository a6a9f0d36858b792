#!/usr/bin/env python3
"""Goal: `taiyen publish`, `standby` and `promote` do what their help says: a second copy that takes over, and an old
primary that is refused. Method: heaps of make_heap, and a nats-server or a broker of Kafka of the test's own; skipped
where there is none (Kafka: make test-kafka).

    tests/cli/test_standby.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import os
import pathlib
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

    def begins(self, process, says):
        """From then on, an interrupt ends it in order."""
        said = process.stdout.readline()
        self.assertIn(says, said, said or process.communicate()[1])

    def publish_base(self, heap):
        publisher = self.runs("publish", heap)
        self.begins(publisher, "publishes to atlas")
        self.assertIn("a base after transaction", publisher.stdout.readline())
        self.ends(publisher, "published up to transaction")

    def test_there_and_back(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        self.publish_base(heap)
        standby = self.runs("standby", copy)
        self.begins(standby, "follows atlas")
        self.ends(standby, "took transactions up to")
        said = self.succeeds(*self.words("promote", copy))
        self.assertIn("is the primary of term 2", said)
        self.assertIn("a base after transaction", said)  # or commits that wait for it would wait for ever
        said = self.succeeds(*self.words("promote", copy))
        self.assertIn("is the primary already", said)
        self.assertNotIn("a base", said)
        self.ends(self.published(copy), "published up to transaction")
        refused = run(*self.words("standby", copy))
        self.assertEqual(refused.returncode, 3)
        self.assertIn("is the primary, since term 2", refused.stderr)
        self.assertEqual(self.content(heap), self.content(copy))
        refused = run(*self.words("publish", heap))
        self.assertEqual(refused.returncode, 3)
        self.assertIn("the primary since term 2", refused.stderr)
        self.fails(3, *self.words("publish", heap), "--base", says=("the primary since term 2",))
        other = self.runs("standby", self.path("other.ty"))
        self.begins(other, "follows atlas")
        self.ends(other, "took transactions up to")

    def published(self, heap):
        """A publisher of which somebody else asks a base."""
        publisher = self.runs("publish", heap)
        self.begins(publisher, "publishes to atlas")
        base = run(*self.words("publish", heap), "--base")  # which waits for it
        self.assertEqual(base.returncode, 0, base.stderr)
        return publisher

    def test_promotes_without_a_base(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        self.publish_base(heap)
        standby = self.runs("standby", copy)
        self.begins(standby, "follows atlas")
        self.ends(standby, "took transactions up to")
        self.assertNotIn("a base", self.succeeds(*self.words("promote", copy), "--no-base"))
        self.fails(2, *self.words("publish", copy), "--base", "--wait", "0", says=("nobody has published",))

    def test_begins_in_any_order(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        standby = self.runs("standby", copy)
        base = subprocess.Popen([support.TAIYEN, *self.words("publish", heap), "--base"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        for process, says in ((standby, "the engine has no base"), (base, "nobody has published")):
            said = process.stderr.readline()
            self.assertIn(says, said)
            self.assertNotIn("does not exist", said)
            self.assertIn("waiting for it, for 60 s at the most (--wait)", process.stderr.readline())
        publisher = self.runs("publish", heap)
        self.begins(standby, "follows atlas")
        self.ends(standby, "took transactions up to")
        self.ends(publisher, "published up to transaction")
        said, wrong = base.communicate(timeout=60)
        self.assertEqual(base.returncode, 0, wrong)
        self.assertIn("a base after transaction", said)

    def test_an_interrupt_ends_the_waiting(self):
        standby = self.runs("standby", self.path("copy.ty"))
        self.assertIn("the engine has no base", standby.stderr.readline())
        self.assertIn("waiting for it", standby.stderr.readline())
        standby.send_signal(signal.SIGTERM)
        standby.communicate(timeout=60)
        self.assertIn(standby.returncode, (0, -signal.SIGTERM))  # the latter where it looks just then

    def test_takes_over_when_the_publisher_is_killed(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        publisher = self.runs("publish", heap)
        self.begins(publisher, "publishes to atlas")
        self.assertIn("a base after transaction", publisher.stdout.readline())
        standby = subprocess.Popen([support.TAIYEN, *self.words("standby", copy), "--take-over-after", "5s"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begins(standby, "follows atlas")
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
        refused = run(*self.words("publish", heap))  # and notes that in the heap
        self.assertEqual(refused.returncode, 3)
        self.assertIn("the primary since term 2", refused.stderr)

    def test_an_interrupt_is_no_takeover(self):
        heap, copy = self.heap("commit"), self.path("copy.ty")
        self.publish_base(heap)
        standby = subprocess.Popen([support.TAIYEN, *self.words("standby", copy), "--take-over-after", "1h"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.begins(standby, "follows atlas")
        standby.send_signal(signal.SIGINT)
        said, wrong = standby.communicate(timeout=60)
        self.assertEqual(standby.returncode, 1, wrong)
        self.assertIn("took transactions up to", said)

    def test_refusals(self):
        heap = self.heap("commit")
        self.fails(2, "publish", "--wait", "0", "--server", self.nobody, heap, "atlas", says=(self.says_nobody,))
        self.fails(2, "publish", "--wait", "soon", "--server", self.url, heap, "atlas", says=("'soon'",))
        self.fails(2, "publish", "--server", self.url, heap, "a.b", says=("name",))
        self.fails(2, *self.words("publish", heap), "--base", "--wait", "0", says=("nobody has published",))
        self.fails(2, *self.words("standby", self.path("none.ty")), "--wait", "0", says=("no base",))
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

    def test_a_list_of_servers(self):
        heap = self.heap("commit")
        url, self.url = self.url, f"nats://127.0.0.1:1,{self.url}"
        self.publish_base(heap)
        self.url = f"{url}, {url}"
        self.ends(self.published(heap), "published up to transaction")
        self.fails(2, "publish", "--server", f"{url},http://127.0.0.1:1", heap, "atlas", says=("nats://HOST",))

    def test_waits_for_the_server(self):
        heap = self.heap("commit")
        port = int(self.url.rpartition(":")[2])
        self.server.kill()
        self.server.wait()
        publisher = self.runs("publish", heap)
        self.assertIn("connect to a server", publisher.stderr.readline())
        self.assertIn("waiting for it", publisher.stderr.readline())
        again = subprocess.Popen([SERVER, "-c", self.path("nats.conf"), "-p", str(port)], stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (again.kill(), again.wait()))
        self.begins(publisher, "publishes to atlas")
        self.assertIn("a base after transaction", publisher.stdout.readline())
        self.ends(publisher, "published up to transaction")

    def test_the_how_to_has_a_config_that_servers_take(self):
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "copies.md").read_text(encoding="utf-8")
        section = text.partition("## Keep a standby on another machine")[2].partition("\n## ")[0]
        config = re.search(r"```text\n(.*?)```", section, re.DOTALL)[1]
        self.assertIn("jetstream", config)
        path = self.path("how-to.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config.replace("/var/lib/nats", self.path("how-to")))  # else as it stands
        server = subprocess.Popen([SERVER, "-c", path, "-a", "127.0.0.1", "-p", "-1"], stderr=subprocess.PIPE,
                                  text=True)
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stderr.close()))
        said = []
        for line in server.stderr:
            said.append(line)
            found = re.search(r"Listening for client connections on (127\.0\.0\.1:\d+)", line)
            self.url = f"nats://{found[1]}" if found else self.url
            if "Server is ready" in line:
                break
        self.assertIn("Server is ready", "".join(said))
        self.publish_base(self.heap("commit"))

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
        while "no base" not in run(*self.words("standby", self.path("none.ty")), "--wait", "0").stderr:
            self.assertIsNone(self.server.poll())

    def end_server(self):
        self.server.kill()
        self.server.wait()


if __name__ == "__main__":
    support.main()
