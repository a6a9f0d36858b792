"""Goal: the examples of docstrings, of the tutorial, of the pages in docs/python and of examples/python do what they
show, and the reference is what the docstrings say. Method: doctest and the programs themselves, each in a folder of its
own."""

import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest
import taiyen.shelf

TREE = pathlib.Path(__file__).parents[3]
TUTORIAL = TREE / "packages/python/README.md"
PAGES = TREE / "docs/python"
EXAMPLES = TREE / "examples/python"
PACKAGE = str(pathlib.Path(taiyen.__file__).parents[1])
pytestmark = pytest.mark.skipif(not PAGES.exists(), reason="the pages and examples are not beside the tests")


def run(*command, cwd):
    result = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": PACKAGE})  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_docstrings():
    assert doctest.testmod(taiyen).failed == 0


def test_docstring_of_shelf(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(taiyen.shelf).failed == 0


@pytest.mark.parametrize("page", [TUTORIAL, PAGES / "how-to.md", TREE / "docs/how-to/go-back.md",
                                  TREE / "docs/how-to/processes.md"],
                         ids=["tutorial", "how-to", "go-back", "processes"])  # fmt: skip
def test_page(page, tmp_path, monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", PACKAGE)  # for programs that they start
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert failed == 0 and tried > 10


def test_pages_share_no_files():
    """Whoever tries two pages in one folder gets what they show."""
    names = [name for page in (TUTORIAL, *PAGES.glob("*.md"))
             for name in set(re.findall(r'open\("([^"]+)"', "".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))))]  # fmt: skip
    assert len(names) > 10 and len(names) == len(set(names)), sorted(names)


@pytest.mark.parametrize("store", ["shelve", "sqlite3", "lmdb", "ZODB", "numpy.memmap"])
def test_coming_from(store, tmp_path, monkeypatch):
    pytest.importorskip(store.split(".")[0])
    monkeypatch.chdir(tmp_path)
    sections = (PAGES / "coming-from.md").read_text().split("\n## ")
    (text,) = [section for section in sections if section.startswith(store + "\n")]
    test = doctest.DocTestParser().get_doctest(text, {"taiyen": taiyen}, store, "coming-from.md", 0)
    assert len(test.examples) >= 4
    assert doctest.DocTestRunner().run(test).failed == 0


def test_reference(tmp_path):
    run(TREE / "scripts/python_reference", "--check", cwd=tmp_path)


def test_atlas(tmp_path):
    pytest.importorskip("numpy")
    first = run(EXAMPLES / "atlas.py", "world.ty", cwd=tmp_path)
    assert "144563 places" in first and "loaded" in first
    again = run(EXAMPLES / "atlas.py", "world.ty", cwd=tmp_path)
    assert "144563 places" in again and "loaded" not in again and "Lisbon" in again


def test_graph_survives(tmp_path):
    result = run(EXAMPLES / "graph.py", "--kills", "3", cwd=tmp_path)
    assert "killed 3 times" in result and "nothing is lost" in result
