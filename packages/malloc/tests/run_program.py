#!/usr/bin/env python3
"""Runs a real program under the drop-in malloc (LD_PRELOAD), unmodified.

    packages/malloc/tests/run_program.py PROGRAM --library LIBTAIYEN_MALLOC_SO [--compiler CXX]

PROGRAM is one of python, g++, sqlite3, git, redis, node. What it makes of a workload must be the same as without the
library, byte for byte. Exit 77: the program is not installed (scripts/setup dropin installs redis and node).
"""

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
SKIPPED = 77
SECONDS = 300

PYTHON_SUITES = "test_json test_re test_dict test_list test_bytes test_gc test_fork1 test_queue test_pickle".split()

PYTHON_SCRIPT = """
import hashlib, json, multiprocessing, re, subprocess, sys, threading, zlib
digest = hashlib.sha256()
tree = {str(i): {"name": "n%d" % i, "values": list(range(i % 50))} for i in range(20000)}
text = json.dumps(tree)
digest.update(text.encode())
assert json.loads(text) == tree
digest.update(" ".join(re.findall(r"n\\d*7\\b", text)).encode())
digest.update(zlib.decompress(zlib.compress(text.encode() * 3)))
def count(results, number):
    words = {}
    for i in range(50000):
        word = "w%d" % (i * (number + 3) % 9973)
        words[word] = words.get(word, "") + "x"
    results[number] = sum(len(value) for value in words.values())
results = {}
threads = [threading.Thread(target=count, args=(results, number)) for number in range(8)]
for thread in threads: thread.start()
digest.update(subprocess.run(["/bin/echo", "child"], stdout=subprocess.PIPE).stdout)
with multiprocessing.get_context("fork").Pool(3) as pool:
    digest.update(repr(pool.map(str.upper, ["a%d" % i for i in range(2000)])).encode())
for thread in threads: thread.join()
digest.update(repr(sorted(results.items())).encode())
print(digest.hexdigest())
"""

SQL = """
CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b REAL, c BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
    INSERT INTO t SELECT i, printf('name-%d-%s', i, hex(i * 7919)), i * 1.5, zeroblob(i % 300) FROM n;
CREATE INDEX ta ON t(a);
CREATE INDEX tb ON t(b);
SELECT count(*), sum(length(c)), max(a) FROM t;
SELECT count(*) FROM t x JOIN t y ON x.a = y.a WHERE x.b > 1000;
UPDATE t SET c = zeroblob(id % 1000) WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
SELECT group_concat(m) FROM (SELECT max(a) m, id % 10 g FROM t GROUP BY g ORDER BY g);
PRAGMA integrity_check;
"""

NODE_SCRIPT = """
const zlib = require('zlib'), crypto = require('crypto');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (isMainThread) {
    const hash = crypto.createHash('sha256'), map = new Map();
    for (let i = 0; i < 200000; i++) map.set('k' + i, Buffer.from('v'.repeat(i % 100)));
    for (const [key, value] of map) hash.update(key).update(value);
    hash.update(zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(20 << 20, 'abc'))));
    let sum = 0, ended = 0;
    for (let i = 0; i < 4; i++)
        new Worker(__filename).on('message', x => { sum += x; })
            .on('exit', () => { if (++ended == 4) console.log(hash.digest('hex'), sum); });
} else {
    parentPort.postMessage(JSON.stringify([...Array(100000).keys()]).length);
}
"""

FILL_REDIS = """
for i = 1, 30000 do
    redis.call('SET', 'text:' .. i, string.rep('x', i % 500))
    redis.call('ZADD', 'sorted', i, 'member' .. i)
    redis.call('HSET', 'hash:' .. i % 100, 'field' .. i, i)
    redis.call('RPUSH', 'list:' .. i % 10, string.rep('y', i % 100))
end
"""


class Skip(Exception):
    pass


class Failed(Exception):
    pass


def find(name, package):
    path = shutil.which(name)
    if path is None:
        raise Skip(f"{name} is not installed (package {package})")
    return path


class Runner:
    """Runs commands with the library, or without."""

    def __init__(self, library, folder):
        self.library, self.folder = library, folder

    def environment(self, preloaded):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
        environment.update(LC_ALL="C", HOME=self.folder, PYTHONHASHSEED="0")
        if preloaded:
            environment["LD_PRELOAD"] = self.library
        return environment

    def run(self, command, preloaded=True, stdin=b"", cwd=None):
        done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd or self.folder,
                              env=self.environment(preloaded), timeout=SECONDS)
        if done.returncode != 0 or b"taiyen" in done.stderr or b"LD_PRELOAD" in done.stderr:
            tail = (done.stdout[-1500:] + done.stderr[-1500:]).decode(errors="replace")
            raise Failed(f"{' '.join(command)[:200]} (preloaded: {preloaded}) ended with {done.returncode}:\n{tail}")
        return done.stdout

    def compare(self, what, command, stdin=b"", cwd=None):
        """Runs a command with and without the library: its output must be the same, and not empty."""
        ours = self.run(command, True, stdin, cwd)
        theirs = self.run(command, False, stdin, cwd)
        if ours != theirs or not ours:
            raise Failed(f"{what}: the output differs: {ours[-300:]!r} with the library, {theirs[-300:]!r} without")
        print(f"{what}: the same {len(ours)} bytes, {hashlib.sha256(ours).hexdigest()[:16]}")

    def check_bound(self, command):
        """A program that kept its own malloc would prove nothing."""
        log = os.path.join(self.folder, "bindings")
        environment = self.environment(True)
        environment.update(LD_DEBUG="bindings", LD_DEBUG_OUTPUT=log)
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                       env=environment, timeout=SECONDS)
        name = re.escape(os.path.basename(self.library))
        for entry in os.listdir(self.folder):
            if entry.startswith("bindings."):
                path = os.path.join(self.folder, entry)
                with open(path, errors="replace") as bindings:
                    text = bindings.read()
                os.remove(path)
                if re.search(rf"to \S*{name} \[0\]: normal symbol `malloc'", text):
                    return
        raise Failed(f"{command[0]} does not use the library's malloc")


def python(runner, _):
    runner.check_bound([sys.executable, "-c", "pass"])
    runner.compare("python script", [sys.executable, "-c", PYTHON_SCRIPT])
    suites = [name for name in PYTHON_SUITES if importlib.util.find_spec("test." + name)]
    if not suites:
        print("python's own test suite is not installed (package libpython3.11-testsuite): left out")
        return
    runner.run([sys.executable, "-m", "test", "-q", *suites])
    print("python's tests:", *suites)


def gxx(runner, compiler):
    compiler = find(compiler, "g++")
    backend = runner.run([compiler, "-print-prog-name=cc1plus"], preloaded=False).decode().strip()
    if not os.path.isabs(backend):
        raise Skip(f"{compiler} is not GCC")
    runner.check_bound([backend, "--version"])
    source = os.path.join(ROOT, "cli", "main.cpp")
    runner.compare("g++ -O2", [compiler, "-std=c++20", "-O2", "-S", "-o", "-", "-I", ROOT, "-I",
                               os.path.join(ROOT, "include"), source])


def sqlite3(runner, _):
    program = find("sqlite3", "sqlite3")
    runner.check_bound([program, "--version"])
    runner.compare("sqlite3 in memory", [program, ":memory:"], stdin=SQL.encode())


def git(runner, _):
    program = find("git", "git")
    base = [program, "-c", "safe.directory=*", "-c", "gc.auto=0"]
    if not os.path.exists(os.path.join(ROOT, ".git")):
        raise Skip("this tree is not a git repository")
    runner.check_bound([program, "--version"])
    runner.compare("git log", base + ["-C", ROOT, "log", "--stat", "-M", "-200"])
    clone = os.path.join(runner.folder, "clone")
    runner.run(base + ["clone", "-q", "--no-local", ROOT, clone])
    runner.run(base + ["-C", clone, "gc", "--aggressive", "--prune=now", "-q"])
    runner.run(base + ["-C", clone, "fsck", "--full"], preloaded=False)
    runner.compare("git log of the clone", base + ["-C", clone, "log", "--stat", "-200"])


class RedisServer:
    def __init__(self, runner):
        self.runner = runner
        self.socket = os.path.join(runner.folder, "redis.sock")
        self.log = open(os.path.join(runner.folder, "redis.log"), "a+b")
        self.server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", runner.folder, "--save", "",
             "--appendonly", "no", "--enable-debug-command", "local", "--enable-module-command", "no"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=runner.environment(True))

    def __enter__(self):
        end = time.monotonic() + 60
        while not self.answers():
            if self.server.poll() is not None or time.monotonic() > end:
                raise Failed("redis-server does not answer:\n" + self.log_tail())
            time.sleep(0.05)  # not to wait for it: so that asking does not take its processor
        return self

    def __exit__(self, *_):
        if self.server.poll() is None:
            self.server.terminate()
        self.server.wait(60)
        self.log.close()

    def answers(self):
        done = subprocess.run(["redis-cli", "-s", self.socket, "ping"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout.strip() == b"PONG"

    def log_tail(self):
        self.log.seek(0)
        return self.log.read()[-2000:].decode(errors="replace")

    def command(self, *words):
        answer = self.runner.run(["redis-cli", "-s", self.socket, *words]).decode().strip()
        if answer.startswith("ERR") or answer.startswith("(error)"):
            raise Failed(f"redis: {words}: {answer}")
        return answer

    def shut_down(self, *how):
        subprocess.run(["redis-cli", "-s", self.socket, "shutdown", *how], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        if self.server.wait(60) != 0:
            raise Failed(f"redis-server ended with {self.server.returncode}:\n{self.log_tail()}")


def redis(runner, _):
    find("redis-server", "redis-server")
    find("redis-benchmark", "redis-tools")
    runner.check_bound(["redis-server", "--version"])
    with RedisServer(runner) as server:
        with open(f"/proc/{server.server.pid}/maps") as maps:
            if runner.library not in maps.read():
                raise Failed("redis-server runs without the library")
        runner.run(["redis-benchmark", "-s", server.socket, "-q", "-n", "20000", "-c", "20", "-d", "200", "-r", "5000",
                    "-t", "set,get,incr,lpush,rpush,lpop,sadd,hset,zadd,lrange_100,mset"])
        server.command("eval", FILL_REDIS, "0")
        server.command("save")
        digest = server.command("debug", "digest")
        server.command("bgsave") # forks
        server.shut_down("nosave")
    with RedisServer(runner) as server:
        again = server.command("debug", "digest")
        if again != digest or set(digest) == {"0"}:
            raise Failed(f"redis: the data loaded has the digest {again}, what was saved {digest}")
        server.shut_down("nosave")
    print("redis: benchmark, save, load:", digest)


def node(runner, _):
    program = find("node", "nodejs")
    runner.check_bound([program, "--version"])
    script = os.path.join(runner.folder, "script.js")
    with open(script, "w") as file:
        file.write(NODE_SCRIPT)
    runner.compare("node with workers", [program, script])


PROGRAMS = {"python": python, "g++": gxx, "sqlite3": sqlite3, "git": git, "redis": redis, "node": node}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--library", required=True)
    parser.add_argument("--compiler", default="g++")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            PROGRAMS[arguments.program](Runner(os.path.realpath(arguments.library), folder), arguments.compiler)
        except Skip as reason:
            print(f"skipped: {reason}")
            return SKIPPED
        except Failed as reason:
            print(reason)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
