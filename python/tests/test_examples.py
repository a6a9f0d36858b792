"""Goal: the examples of docstrings and of the tutorial do what they show. Method: doctest, in a folder of its own."""

import doctest
import pathlib

import pytest
import taiyen.shelf

TUTORIAL = pathlib.Path(__file__).parents[1] / "README.md"


def test_docstrings():
    assert doctest.testmod(taiyen).failed == 0


def test_docstring_of_shelf(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(taiyen.shelf).failed == 0


@pytest.mark.skipif(not TUTORIAL.exists(), reason="the tutorial is not beside the tests")
def test_tutorial(tmp_path, monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(TUTORIAL), module_relative=False)
    assert failed == 0 and tried > 10
