"""Samples by case, subject and metric: their medians as the JSON that taiyen-bench writes, and as a table."""

import json
import math
import statistics
import sys

SELF = "taiyen"
SUITE = "python"


def figure(value):
    if math.isnan(value):
        return "-"
    if value >= 10:
        return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


class Results:
    def __init__(self):
        self.samples = {}  # (case, metric, unit, subject): values
        self.missing = []
        self.bars = []

    def add(self, case, subject, metric, unit, value):
        self.samples.setdefault((case, metric, unit, subject), []).append(value)

    def left_out(self, subject, case, why):
        text = f"{subject} was not measured in {case}: {why}"
        if text not in self.missing:
            self.missing.append(text)

    def median(self, case, subject, metric):
        for (one, name, _, who), values in self.samples.items():
            if (one, name, who) == (case, metric, subject):
                return statistics.median(values)
        return math.nan

    def ratio(self, case, metric, subject, over):
        return self.median(case, subject, metric) / self.median(case, over, metric)

    def bar(self, what, value, *, at_most=None, at_least=None):
        self.bars.append((what, value, at_most, at_least))

    def subjects(self):
        seen = dict.fromkeys(key[3] for key in self.samples)
        return [name for name in seen if name == SELF] + [name for name in seen if name != SELF]

    def write(self, path):
        rows = [{"suite": SUITE, "case": case, "subject": subject, "metric": metric, "unit": unit,
                 "value": statistics.median(values)}
                for (case, metric, unit, subject), values in self.samples.items()]  # fmt: skip
        text = json.dumps(rows, indent=1) + "\n"
        if path == "-":
            sys.stdout.write(text)
        else:
            with open(path, "w") as file:
                file.write(text)

    def print(self, to, methods):
        names = self.subjects()
        rows = [["case", "metric", "unit", *names]]
        for case, metric, unit in dict.fromkeys(key[:3] for key in self.samples):
            rows.append([case, metric, unit, *(figure(self.median(case, name, metric)) for name in names)])
            rows.append(["", f"{SELF} over it", "", "", *(figure(self.ratio(case, metric, SELF, name))
                                                          for name in names[1:])])  # fmt: skip
        columns(to, rows, 3)
        for text in self.missing:
            print(" ", text, file=to)
        for name in names:
            if name in methods:
                print(f"  {name}: {methods[name]}", file=to)
        print("  bars:", file=to)
        columns(to, [[verdict(*bar[1:]), bar[0], figure(bar[1]),
                      f"at most {figure(bar[2])}" if bar[2] is not None else f"at least {figure(bar[3])}"]
                     for bar in self.bars], 2)  # fmt: skip


def verdict(value, at_most, at_least):
    if math.isnan(value):
        return "not measured"
    return "met" if (value <= at_most if at_most is not None else value >= at_least) else "not met"


def columns(to, rows, left):
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(max(map(len, rows), default=0))]
    for row in rows:
        print(" ", *(f"{text:{'<' if at < left else '>'}{widths[at]}}" for at, text in enumerate(row)), sep="  ", file=to)
