#!/usr/bin/env python3
"""Goal: `taiyen live` shows what `taiyen stat --json` says, of heaps in use, at rest and of dead processes; it answers
nobody who does not know its token, whatever is asked; and it changes no file.
Method: its documents are fetched and compared; requests of every wrong kind, and random ones, are sent to its port.

    tests/cli/test_live.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import support
from live_support import Live, Program
from support import CliTest, hashes, run

# What differs from one look to the next, or is of the view alone.
OF_A_MOMENT = ("view", "live")


def without_moments(document):
    return {name: value for name, value in document.items() if name not in OF_A_MOMENT}


class LiveTest(CliTest):
    def live(self, path, *options):
        live = Live(path, *options)
        self.addCleanup(lambda: live.process.poll() is None and live.end())
        return live

    def ends(self, live):
        """By itself; and it says nothing."""
        self.assertEqual(live.process.communicate(timeout=60), ("", ""))
        self.assertEqual(live.process.returncode, 0)

    def program(self, path, how="serve"):
        program = Program(path, how)
        self.addCleanup(program.kill)
        return program

    def stat(self, path):
        return json.loads(self.succeeds("stat", "--json", path))

    def until(self, live, holds):
        """The first document for which it holds; the test's time limit bounds the wait."""
        while True:
            metrics = live.metrics()
            if holds(metrics):
                return metrics


class Metrics(LiveTest):
    def extents(self, live):
        """All of them: an answer has 200 at the most, and says how many there are after these."""
        at = 0
        while True:
            part = json.loads(live.get(f"extents?from={at}"))
            self.assertLessEqual(len(part["extents"]), 200)
            yield from part["extents"]
            if part["more"] == "0":
                return
            at = int(part["extents"][-1]["offset"]) + int(part["extents"][-1]["bytes"])

    def test_heaps_at_rest_and_of_dead_processes(self):
        for how in ("archive", "undo", "described", "die", "commit", "parts"):
            path = self.heap(how, how)
            before = hashes(self.folder)
            live = self.live(path)
            self.assertEqual(without_moments(live.metrics()), without_moments(self.stat(path)), how)
            self.assertNotIn("live", live.metrics())
            cells = json.loads(live.get("map"))["cells"]
            self.assertGreater(len(cells), 0)
            live_bytes = sum(int(one["block_bytes"]) * int(one["live_count"]) for one in self.extents(live))
            self.assertEqual(live_bytes, int(live.metrics()["live_bytes"]))
            self.assertEqual(live.end(), (0, ""))
            self.assertEqual(hashes(self.folder), before)

    def test_a_heap_in_use(self):
        path = self.path("used")
        program = self.program(path)
        live = self.live(path)
        first = self.until(live, lambda metrics: "live" in metrics)["live"]
        self.assertEqual(int(first["process"]), program.process.pid)
        self.assertEqual(int(first["transactions"]), 26)
        self.assertEqual(len(first["newest_snapshots"]), 1)
        at_rest = self.stat(path)["live"]
        for name in set(first) - {"unix_ns", "looks", "look_ns", "counted_unix_ns", "count_ns", "durable_times"}:
            self.assertEqual(first[name], at_rest[name], name)
        for _ in range(10):
            program.commit()
        last = self.until(live, lambda metrics: int(metrics["live"]["transactions"]) == 36)["live"]
        self.assertEqual(sum(map(int, last["durable_times"])), 10)  # those that somebody looked at

    def test_a_program_that_closes_the_heap_and_one_that_is_killed(self):
        for kind in ("close", "kill"):
            path = self.path(kind)
            program = self.program(path)
            live = self.live(path)
            self.until(live, lambda metrics: "live" in metrics)
            getattr(program, kind)()
            metrics = self.until(live, lambda metrics: "live" not in metrics)
            self.assertEqual(without_moments(metrics), without_moments(self.stat(path)))
            self.assertEqual(metrics["closed"], kind == "close")
            again = self.program(path)  # and it is there again when a program opens it
            self.until(live, lambda metrics: "live" in metrics)
            again.close()

    def test_a_program_that_is_stopped_is_still_there(self):
        path = self.path("used")
        program = self.program(path)
        live = self.live(path)
        before = self.until(live, lambda metrics: "live" in metrics)["view"]["looked_unix_ms"]
        program.process.send_signal(signal.SIGSTOP)
        looks = live.metrics()["live"]["looks"]
        self.assertEqual(live.metrics()["live"]["process"], str(program.process.pid))
        program.process.send_signal(signal.SIGCONT)
        after = self.until(live, lambda metrics: metrics["live"]["looks"] != looks)
        self.assertEqual(after["view"]["looked_unix_ms"], before)  # no other look into the heap was taken

    def test_events_come_and_end(self):
        path = self.path("used")
        program = self.program(path)
        live = self.live(path)
        with socket.create_connection(("127.0.0.1", live.port), timeout=60) as connection:
            connection.sendall(f"GET /{live.token}/events HTTP/1.1\r\nHost: {live.host}\r\n\r\n".encode())
            said = b""
            while said.count(b"\ndata: {") < 3:
                said += connection.recv(65536)
            self.assertIn(b"text/event-stream", said)
            program.close()
            self.assertEqual(live.end()[0], 0)  # also while somebody listens
            while connection.recv(65536):
                pass

    def test_a_look_that_is_asked_for(self):
        path = self.path("used")
        program = self.program(path)
        live = self.live(path)
        before = live.metrics()["view"]["looked_unix_ms"]
        for _ in range(3):
            program.commit()
        live.get("look")
        metrics = self.until(live, lambda metrics: metrics["view"]["looked_unix_ms"] != before)
        self.assertEqual(metrics["live_blocks"], self.stat(path)["live_blocks"])


class Levels(LiveTest):
    PAGE = 4096

    def ask(self, live, name):
        said = live.get(name)
        self.assertLess(len(said), 200000)
        return json.loads(said)

    def pages(self, live, part=""):
        """Where each page of the map's cells begins, through the levels."""
        shown = self.ask(live, "map" + part)
        size = int(shown["cell_bytes"])
        self.assertLessEqual(len(shown["cells"]), 1024)
        for number in range(len(shown["cells"])):
            at = int(shown["from"]) + number * size
            if size == self.PAGE:
                yield at, shown["cells"][number]
            else:
                yield from self.pages(live, f"?from={at}&bytes={size}")

    def dumped(self, path):
        entries = [json.loads(line) for line in self.succeeds("dump", "--json", path).splitlines()]
        base = int(next(one["base"] for one in entries if one["kind"] == "heap"), 16)
        return base, {int(one["address"], 16) - base: int(one["size_bytes"]) for one in entries if one["kind"] == "block"}

    def test_blocks_of_all_pages_are_those_of_a_dump(self):
        for how in ("archive", "undo", "described", "die", "commit"):
            path = self.heap(how, how)
            live = self.live(path)
            base, dumped = self.dumped(path)
            found, roots = {}, set()
            for at, cell in self.pages(live):
                page = self.ask(live, f"blocks?from={at + 17}")
                self.assertEqual(int(page["from"]), at)
                self.assertLessEqual(len(page["blocks"]), 513)
                self.assertEqual(bool(cell[5]), page["dirty"])
                used = 0
                for block in page["blocks"]:
                    first, size = int(block["offset"]), int(block["bytes"])
                    if block["live"]:
                        found[first] = size
                        roots.update(block.get("roots", ()))
                        used += min(first + size, at + self.PAGE) - max(first, at)
                kinds = {"span": cell[0] + cell[1], "run": cell[2], "free": cell[3], "control": cell[4]}
                self.assertAlmostEqual(kinds[page["kind"]], 1, delta=0.02)  # of two that are rounded
                if page["kind"] == "span":
                    self.assertAlmostEqual(cell[0] * self.PAGE, used, delta=0.01 * self.PAGE)
            self.assertEqual(found, dumped, how)
            self.assertEqual(roots, {root["name"] for root in live.metrics()["roots"]})
            for offset in list(dumped)[:: max(1, len(dumped) // 20)]:
                shown = self.ask(live, f"block?from={offset}")
                whole = json.loads(self.succeeds("dump", "--json", "--block", hex(base + offset), path))
                self.assertEqual(shown["block"]["bytes"], whole["bytes"][:8192])
                self.assertEqual(shown["block"]["words"], [one for one in whole["words"] if int(one["offset"]) < 4096])
                for name in set(whole) - {"bytes", "words"}:
                    self.assertEqual(shown["block"][name], whole[name], name)

    def test_levels_of_a_larger_heap(self):
        path = self.path("used")
        program = self.program(path, "steps")
        program.close()
        live = self.live(path)
        whole = self.ask(live, "map")
        self.assertEqual(whole["cell_bytes"], "16384")
        total = [sum(column) for column in zip(*whole["cells"])]
        pages = [cell for _, cell in self.pages(live)]
        for n in range(5):  # each cell is rounded to a hundredth of a page
            self.assertAlmostEqual(total[n], sum(cell[n] for cell in pages), delta=0.01 * (len(pages) + len(whole["cells"])))
        self.assertEqual(sum(total[:5]), len(pages))

    def test_hostile_numbers(self):
        live = self.live(self.heap("described"))
        largest = 2**64 - 1
        for name in ("map", "extents", "blocks", "block"):
            for at in (0, 1, 4095, 4096, 2**31, 2**32, 2**46, 2**63, largest - 4095, largest):
                for size in (0, 1, 4096, 2**40, largest):
                    self.ask(live, f"{name}?from={at}&bytes={size}")
            for wrong in ("-1", "x", "", "1x", "0x10", "1.5", "+1", "%201", str(largest + 1), "9" * 100):
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    live.get(f"{name}?from={wrong}")
                self.assertEqual(refused.exception.code, 400, wrong)
                refused.exception.close()
        self.assertIn("error", self.ask(live, "block?from=0"))
        self.assertEqual(self.ask(live, f"map?from={largest}")["cells"], [])
        self.assertEqual(live.end(), (0, ""))

    def test_where_a_program_has_dirty_pages(self):
        path = self.path("used")
        program = self.program(path, "steps")
        live = self.live(path)
        metrics = self.until(live, lambda metrics: "dirty_cells" in metrics.get("live", {}))["live"]
        self.assertEqual(int(metrics["dirty_cell_bytes"]), 16384)
        self.assertLessEqual(sum(metrics["dirty_cells"]), int(metrics["dirty_pages"]))
        self.assertGreater(sum(metrics["dirty_cells"]), 0)
        self.assertLessEqual(max(metrics["dirty_cells"]), 4)
        self.assertEqual(self.stat(path)["live"]["dirty_cells"], metrics["dirty_cells"])
        program.close()

    def test_undo_and_memory_of_a_program(self):
        path = self.path("used")
        program = self.program(path, "steps")
        live = self.live(path)
        for _ in range(4):
            program.commit()
        undo = self.until(live, lambda metrics: metrics.get("live", {}).get("undo", {}).get("undoable") == "5")["live"]["undo"]
        self.assertEqual((undo["redoable"], undo["kept_blocks"]), ("0", "5"))
        self.assertEqual(self.stat(path)["live"]["undo"], undo)
        self.assertIn("5 transactions to undo", self.succeeds("stat", path))
        self.assertEqual(self.stat(path)["live"]["memory_bound_bytes"], "0")
        program.close()

    def test_what_a_browser_gets_a_second(self):
        path = self.path("used")
        self.program(path, "steps")
        live = self.live(path)
        self.until(live, lambda metrics: "dirty_cells" in metrics.get("live", {}))
        with socket.create_connection(("127.0.0.1", live.port), timeout=60) as connection:
            connection.sendall(f"GET /{live.token}/events HTTP/1.1\r\nHost: {live.host}\r\n\r\n".encode())
            got, end = 0, time.monotonic() + 3
            while time.monotonic() < end:
                got += len(connection.recv(65536))
        self.assertLess(got / 3, 200000)


class Page(LiveTest):
    def state(self, page):
        return json.loads(page.partition('id="first">')[2].partition("</script>")[0])

    def test_a_saved_page_needs_nothing_else(self):
        path = self.heap("undo")
        saved = self.path("page.html")
        self.assertEqual(self.succeeds("live", path, "--output", saved), "")
        with open(saved, encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(self.state(page)["saved"])
        self.assertEqual(without_moments(self.state(page)["metrics"]), without_moments(self.stat(path)))
        for word in ("{{", "src=", "@import", "url("):
            self.assertNotIn(word, page)
        self.assertEqual(self.state(self.live(path).get("save"))["metrics"]["identity"], self.stat(path)["identity"])
        self.fails(2, "live", path, "-o", saved, says=("page.html", "new file"))

    def test_a_name_is_never_html(self):
        path = self.path("</script><script>alert(1)<")
        os.makedirs(os.path.dirname(path))
        subprocess.run([support.MAKE_HEAP, path, "undo"], check=True, timeout=60)
        page = self.live(path).get()
        self.assertEqual(self.state(page)["metrics"]["path"], path)
        self.assertNotIn("alert(1)<", page)

    def test_it_reads_what_there_is(self):
        """Also where no browser is: each metric that the page names is in a document, and its script can be parsed."""
        def names(document, path=""):
            for name, value in document.items():
                yield path + name
                yield from names(value, path + name + ".") if isinstance(value, dict) else ()

        there = {name for how in ("archive", "undo", "commit") for name in names(self.stat(self.heap(how, how + ".ty")))}
        for how in ("serve", "steps"):
            path = self.path(how)
            self.program(path, how)
            live = self.live(path)
            there |= set(names(self.until(live, lambda metrics: "dirty_cells" in metrics.get("live", {}))))
            page = live.get()
        script = page.rpartition("<script nonce=")[2].partition(">")[2].partition("</script>")[0]
        named = set(re.findall(r'data-figure="([a-z_.]+)"', page)) | set(re.findall(r"\blive\.[a-z_]+", script, re.I))
        self.assertGreater(len(named), 40)
        self.assertEqual(named - there, {"live.copies_bytes"})  # of a heap larger than memory
        if shutil.which("node"):
            path = self.path("page.js")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            subprocess.run(["node", "--check", path], check=True, timeout=60)

    def test_rules_of_the_page(self):
        live = self.live(self.heap("undo"))
        with urllib.request.urlopen(live.url, timeout=30) as answer:
            rules = answer.headers["Content-Security-Policy"]
            page = answer.read().decode()
        nonce = rules.partition("script-src 'nonce-")[2].partition("'")[0]
        self.assertEqual(len(nonce), 32)
        self.assertIn(f'<script nonce="{nonce}">', page)
        self.assertIn("default-src 'none'", rules)
        with urllib.request.urlopen(live.url, timeout=30) as answer:
            self.assertNotIn(nonce, answer.read().decode())  # another one each time
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")


class Hostile(LiveTest):
    def ask(self, live, request, wants=True):
        """What stands after "HTTP/1.1 " in the answer, and all of it."""
        with socket.create_connection(("127.0.0.1", live.port), timeout=30 if wants else 0.05) as connection:
            try:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                said = b""
                while part := connection.recv(65536):
                    said += part
            except OSError:  # it may close before it has read all; or wait for more, of what nobody wants an answer to
                return "", b""
        if wants:
            self.assertTrue(said.startswith(b"HTTP/1."), said[:80])
        return said[9:12].decode("latin-1"), said

    def test_who_does_not_know_or_should_not_ask_gets_nothing(self):
        live = self.live(self.heap("undo"))
        path = f"/{live.token}/metrics"
        wrong = "0" * 32 if live.token[0] != "0" else "1" * 32
        nearly = live.token[:31] + ("1" if live.token[31] == "0" else "0")

        def request(what=path, method="GET", host=live.host, more=""):
            return f"{method} {what} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n".encode()

        self.assertEqual(self.ask(live, request())[0], "200")
        self.assertEqual(self.ask(live, request(more=f"Origin: http://{live.host}\r\n"))[0], "200")
        for asked in (request("/"), request(f"/{wrong}/metrics"), request(f"/{nearly}/metrics"), request(f"/{live.token[:31]}/metrics"),
                      request(f"/{live.token}"), request(f"/{live.token}x/metrics"), request(f"/{live.token}/../metrics"),
                      request(f"/{live.token}/nothing"), request(f"//{live.token}/metrics"), request("/metrics"),
                      request(host="evil.example"), request(host=f"localhost:{live.port}"), request(host="127.0.0.1"),
                      request(host=""), request(more="Origin: http://evil.example\r\n"),
                      request(more="Origin: null\r\n"), request(more="Sec-Fetch-Site: cross-site\r\n"),
                      request(more="Sec-Fetch-Site: same-site\r\n")):
            code, said = self.ask(live, asked)
            self.assertIn(code, ("404", "400"), asked)
            self.assertNotIn(b"identity", said)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "get"):
            code, said = self.ask(live, request(method=method))
            self.assertIn(code, ("405", "400", "501"), method)
            self.assertNotIn(b"identity", said)
        self.assertEqual(self.ask(live, request(method="HEAD"))[1].partition(b"\r\n\r\n")[2], b"")
        self.assertEqual(live.metrics()["found"], "closed")

    def test_random_and_endless_requests(self):
        live = self.live(self.heap("undo"))
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        for _ in range(300):
            name = chance.choice(("extents?from=1", "map?from=4096&bytes=8192", "blocks?from=4096", "block?from=8192"))
            asked = bytearray(f"GET /{live.token}/{name} HTTP/1.1\r\nHost: {live.host}\r\n"
                              "Connection: close\r\n\r\n".encode())
            for _ in range(chance.randrange(1, 6)):
                at = chance.randrange(len(asked))
                kind = chance.randrange(3)
                if kind == 0:
                    asked[at] = chance.randrange(256)
                elif kind == 1:
                    del asked[at : at + chance.randrange(20)]
                else:
                    asked[at:at] = chance.randbytes(chance.choice((1, 50, 3000)))
                asked = asked or bytearray(b"x")
            self.ask(live, bytes(asked), wants=False)
        for asked in (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"A" * 200000,
                      b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                      f"GET /{live.token}/extents?from=99999999999999999999999 HTTP/1.1\r\nHost: {live.host}\r\n"
                      "Connection: close\r\n\r\n".encode(),
                      f"POST /{live.token}/metrics HTTP/1.1\r\nHost: {live.host}\r\nContent-Length: 99999999999\r\n"
                      "\r\nx".encode()):
            self.ask(live, asked, wants=False)
        self.assertIsNone(live.process.poll(), f"seed {seed}")
        self.assertEqual(live.metrics()["found"], "closed")
        self.assertEqual(live.end(), (0, ""), f"seed {seed}")

    def test_it_listens_to_this_machine_alone(self):
        live = self.live(self.heap("undo"))
        with open("/proc/net/tcp", encoding="ascii") as table:
            listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
        own = [one for one in listening if one.endswith(f":{live.port:04X}")]
        self.assertEqual(own, [f"0100007F:{live.port:04X}"])


    def test_the_other_loopback_address(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("this machine has no IPv6")
        live = self.live(self.heap("undo"), "--address", "::1")
        self.assertEqual(live.host, f"[::1]:{live.port}")
        self.assertEqual(live.metrics()["found"], "closed")
        with open("/proc/net/tcp6", encoding="ascii") as table:
            listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
        own = [one for one in listening if one.endswith(f":{live.port:04X}")]
        self.assertEqual(own, [f"00000000000000000000000001000000:{live.port:04X}"])
        with open("/proc/net/tcp", encoding="ascii") as table:
            self.assertNotIn(f":{live.port:04X} 00000000:0000 0A", table.read())
        with self.assertRaises(urllib.error.HTTPError):  # another name of it
            urllib.request.urlopen(urllib.request.Request(live.url, headers={"Host": f"localhost:{live.port}"}))


class Idle(LiveTest):
    def test_it_ends_when_nobody_looks(self):
        live = self.live(self.heap("undo"), "--idle", "1s")
        self.ends(live)

    def test_it_stays_while_somebody_looks(self):
        live = self.live(self.heap("undo"), "--idle", "2s")
        with socket.create_connection(("127.0.0.1", live.port), timeout=60) as connection:
            connection.sendall(f"GET /{live.token}/events HTTP/1.1\r\nHost: {live.host}\r\n\r\n".encode())
            with self.assertRaises(subprocess.TimeoutExpired):
                live.process.wait(8)
            self.assertIn(b"text/event-stream", connection.recv(65536))
        self.ends(live)  # who has gone is noticed, although there was nothing to report

    def test_who_may_not_look_does_not_count(self):
        live = self.live(self.heap("undo"), "--idle", "2s")
        while live.process.poll() is None:  # as often as it answers: if it counted, this would never end
            try:
                urllib.request.urlopen(f"http://{live.host}/{'0' * 32}/metrics", timeout=10).close()
            except OSError as refused:
                if isinstance(refused, urllib.error.HTTPError):
                    refused.close()
        self.ends(live)


class Refusals(LiveTest):
    def test_what_cannot_be_shown(self):
        self.fails(2, "live", self.path("nothing"), says=("nothing",))
        path = self.heap("undo")
        for port in ("0", "65536", "x", "-1"):
            self.fails(2, "live", path, f"--port={port}", says=("port",))
        for idle in ("0", "x", "-1s", "1y"):
            self.fails(2, "live", path, f"--idle={idle}", says=("idle",))
        for address in ("0.0.0.0", "::", "localhost", "192.168.1.1", "127.0.0.2", "::ffff:127.0.0.1"):
            self.fails(2, "live", path, f"--address={address}", says=("address", "::1"))
        self.fails(2, "live", says=("FILE",))
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.fails(2, "live", path, "--port", str(taken.getsockname()[1]), says=("--port",))
        self.assertIn("--output", run("help", "live").stdout)


if __name__ == "__main__":
    support.main()
