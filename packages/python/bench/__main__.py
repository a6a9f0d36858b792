"""Measures the package beside the stores that Python has: `scripts/bench_python BUILD --help`.

Each turn is a process of its own; the subjects take turns, and the medians of all turns are reported.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile

import turns
from results import Results
from stores import STORES, Unavailable
from turns import GROUPS

GIGABYTE = 1 << 30
OPENS = ("taiyen", "taiyen-snapshot", "shelve", "sqlite3", "lmdb", "zodb", "diskcache", "pickle", "memmap")
TOO_LONG = {"diskcache": "to fill it takes hours", "pickle": "the objects take more memory than there is",
            "shelve": "to fill it takes hours"}  # fmt: skip
METHODS = {name: store.durable for name, store in STORES.items()} | {
    "numpy": "an array of its own, in memory", "memmap": "numpy.memmap, not flushed",
    "pickle-each": "each dict pickled by itself, as shelve and the like have them",
}  # fmt: skip


class Bench:
    def __init__(self, settings):
        self.settings = settings
        self.results = Results()
        self.folder = tempfile.mkdtemp(prefix="taiyen-bench-", dir=settings.dir)

    def wanted(self, subject):
        return not self.settings.subject or subject in self.settings.subject

    def wants_case(self, cases):
        return not self.settings.case or any(case in self.settings.case for case in cases)

    def progress(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def apart(self, work, *arguments):
        """Runs it in a process of its own, which starts from nothing; its result, or its exception."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=turns.answer, args=(theirs, work, *arguments))
        process.start()
        theirs.close()
        try:
            outcome = ours.recv()
        except EOFError:
            outcome = RuntimeError(f"the process ended with {process.exitcode}")
        process.join()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def try_subject(self, subject, case, work):
        """False if the subject cannot be measured here, which is reported."""
        try:
            work()
        except Unavailable as why:
            self.results.left_out(subject, case, why)
            return False
        finally:
            for name in os.listdir(self.folder):
                if name.startswith("turn"):
                    shutil.rmtree(os.path.join(self.folder, name))
        return True

    def run_group(self, name):
        work, cases, subjects = GROUPS[name]
        subjects = [subject for subject in subjects if self.wanted(subject)]
        for turn in range(self.settings.turns):
            for subject in list(subjects):
                self.progress(f"{name}: {subject}, {turn + 1} of {self.settings.turns}")

                def one(subject=subject):
                    folder = tempfile.mkdtemp(prefix="turn", dir=self.folder)
                    for case, metric, unit, value in self.apart(turns.run_group, name, subject, folder, self.settings):
                        if not self.settings.case or case in self.settings.case:
                            self.results.add(case, subject, metric, unit, value)

                if not self.try_subject(subject, name, one):
                    subjects.remove(subject)

    def run_open(self, gigabytes):
        """A store at a time, since all together may not fit the disk: filled once, opened in each turn anew."""
        case = f"open-{gigabytes:g}g"
        for subject in OPENS:
            if not self.wanted(subject):
                continue
            if gigabytes > 2 and subject in TOO_LONG:
                self.results.left_out(subject, case, TOO_LONG[subject])
                continue
            self.progress(f"{case}: {subject}")

            def one(subject=subject):
                folder = tempfile.mkdtemp(prefix="turn", dir=self.folder)
                key = self.apart(turns.fill_for_open, subject, folder, int(gigabytes * GIGABYTE) // self.settings.divide)
                for _ in range(2 * self.settings.turns + 1):
                    took = self.apart(turns.open_once, subject, folder, key)
                    self.results.add(case, subject, "open_ms", "ms", took)

            self.try_subject(subject, case, one)

    def run(self):
        for name, (_, cases, _) in GROUPS.items():
            if self.wants_case(cases):
                self.run_group(name)
        for gigabytes in self.settings.open_gb:
            if self.wants_case([f"open-{gigabytes:g}g"]):
                self.run_open(gigabytes)
        self.progress("")

    def evaluate(self):
        found = self.results
        largest = max(self.settings.open_gb, default=0)
        snapshot = "taiyen-snapshot"
        for case in "lookup", "store", "store-new":
            found.bar(f"{case}: our time over the built-in's", 1 / found.ratio(case, "ops_per_s", snapshot, "dict"),
                      at_most=6)
        found.bar("iterate: our time over the built-in's", 1 / found.ratio("iterate", "ops_per_s", snapshot, "dict"),
                  at_most=4)
        for case in "array-sum", "array-assign":
            found.bar(f"{case}: our time over numpy's", 1 / found.ratio(case, "ops_per_s", "taiyen", "numpy"),
                      at_most=1.05)
        for case, ours in ("update", "taiyen"), ("store-bulk", "taiyen"), ("store-bulk", snapshot):
            for peer in "shelve", "zodb", "lmdb":
                found.bar(f"{case}: {ours} over {peer}", found.ratio(case, "ops_per_s", ours, peer), at_least=3)
        found.bar(f"open-{largest:g}g, ms", found.median(f"open-{largest:g}g", snapshot, "open_ms"), at_most=5)
        found.bar("list: bytes over those of each pickled by itself",
                  found.ratio("list", "bytes", snapshot, "pickle-each"), at_most=0.6)


def arguments():
    cases = [case for group in GROUPS.values() for case in group[1]]
    parser = argparse.ArgumentParser(prog="scripts/bench_python BUILD", description=__doc__.split("\n")[0],
                                     epilog=f"cases: {', '.join(cases)}, open-1g, open-10g")
    names = lambda text: text.split(",")
    parser.add_argument("--quick", action="store_true", help="few turns, and one second where commits are counted")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file ('-': standard output)")
    parser.add_argument("--dir", default=".", help="folder on the disk to measure; files are removed afterwards")
    parser.add_argument("--divide", type=int, default=1, help="divide all sizes, to test this program itself")
    parser.add_argument("--case", type=names, default=[], help="only these cases, with commas between")
    parser.add_argument("--subject", type=names, default=[], help="only these subjects, with commas between")
    parser.add_argument("--open-gb", type=lambda text: [float(one) for one in text.split(",") if one], default=[1.0, 10.0],
                        metavar="SIZES", help="sizes of the stores that are opened, in GB (1,10); ten need 15 GB of disk")
    settings = parser.parse_args()
    for chosen, known, what in ((settings.subject, METHODS, "subject"), (settings.case, cases, "case")):
        for name in chosen:
            if name not in known and not name.startswith("open-"):
                parser.error(f"there is no {what} {name}; there are {', '.join(known)}")
    settings.items = max(100_000 // settings.divide, 10)
    settings.array_bytes = max((64 << 20) // settings.divide, 8000)
    settings.turns = 2 if settings.quick else 5
    settings.seconds = (1 if settings.quick else 10) / settings.divide
    return settings


def main():
    settings = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the files go
    bench = Bench(settings)
    try:
        bench.run()
    finally:
        shutil.rmtree(bench.folder)
    bench.evaluate()
    if settings.json:
        bench.results.write(settings.json)
    table = sys.stderr if settings.json == "-" else sys.stdout
    note = " (sizes divided: the figures mean nothing)" if settings.divide > 1 else " (quick)" if settings.quick else ""
    print(f"python: the package beside the stores that Python has{note}", file=table)
    bench.results.print(table, METHODS)


if __name__ == "__main__":
    main()
