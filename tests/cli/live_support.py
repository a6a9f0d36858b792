"""A program that has a heap open, and `taiyen live` beside it."""

import contextlib
import json
import signal
import subprocess
import urllib.request

import support


class Program:
    """A heap that is open, with a commit, or a transaction of undo, for each call. It is killed at the end, unless it was
    closed."""

    def __init__(self, path, how="serve"):
        self.process = subprocess.Popen([support.MAKE_HEAP, path, how], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "committed\n"

    def commit(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "committed\n"

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class Live:
    """`taiyen live`; ended by an interrupt."""

    def __init__(self, path, *options):
        self.process = subprocess.Popen([support.TAIYEN, "live", "--json", *options, path], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.host = self.url.split("/")[2]
        self.port = int(self.host.rpartition(":")[2])
        self.token = self.url.split("/")[3]

    def get(self, name="", timeout=30):
        with urllib.request.urlopen(self.url + name, timeout=timeout) as answer:
            return answer.read().decode()

    def metrics(self):
        return json.loads(self.get("metrics"))

    def end(self):
        """The exit code and what was said on stderr."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=60)
        return self.process.returncode, said[1]
