"""Goal: the measurements run, and their JSON is that of taiyen-bench. Method: tiny sizes; no time is looked at, and a
store that is not installed is reported, not failed for."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import taiyen

BENCH = pathlib.Path(__file__).parents[1] / "bench"
PACKAGE = str(pathlib.Path(taiyen.__file__).parents[1])
pytestmark = pytest.mark.skipif(not BENCH.exists(), reason="the measurements are not beside the tests")


def run(tmp_path, *arguments):
    pytest.importorskip("numpy")
    result = subprocess.run([sys.executable, BENCH, "--dir", tmp_path, "--divide", "5000", "--quick", "--json", "-",
                           *arguments], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": PACKAGE})  # fmt: skip
    assert list(tmp_path.iterdir()) == []  # it has cleaned up
    return result


def test_figures(tmp_path):
    result = run(tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert all(list(row) == ["suite", "case", "subject", "metric", "unit", "value"] for row in rows)
    assert {row["suite"] for row in rows} == {"python"}
    assert all(row["value"] > 0 for row in rows)
    assert {(row["metric"], row["unit"]) for row in rows} == {("ops_per_s", "1/s"), ("bytes", "bytes"), ("open_ms", "ms")}
    measured = {(row["case"], row["subject"]) for row in rows}
    for case in "store-each", "store-bulk", "update", "lookup", "iterate":
        assert {(case, "taiyen"), (case, "dict"), (case, "sqlite3"), (case, "pickle")} <= measured
    assert {("open-10g", "taiyen"), ("open-10g", "memmap"), ("array-sum", "numpy"), ("store", "dict")} <= measured
    for subject in "shelve", "lmdb", "zodb", "diskcache":
        assert ("update", subject) in measured or f"{subject} was not measured in objects: it is not installed" in result.stderr
    assert "bars:" in result.stderr


def test_a_part_is_chosen(tmp_path):
    result = run(tmp_path, "--case", "lookup", "--subject", "taiyen,dict")
    assert {(row["case"], row["subject"]) for row in json.loads(result.stdout)} == {("lookup", "taiyen"), ("lookup", "dict")}


def test_unknown_names_are_refused(tmp_path):
    result = run(tmp_path, "--case", "lookups")
    assert result.returncode == 2 and "there is no case lookups; there are store-each" in result.stderr
