"""Goal: a program that uses shelve does the same with taiyen.shelf. Method: the same steps with both, on purpose and at random;
then what only a heap does."""

import collections
import dbm
import gc
import shelve
import subprocess
import sys
from decimal import Decimal
from typing import NamedTuple

import pytest
import taiyen
from hypothesis import given
from hypothesis import strategies as st
from taiyen import shelf


class Thing:
    def __init__(self, parts=()):
        self.parts = list(parts)

    def __eq__(self, other):
        return type(other) is Thing and self.parts == other.parts


class Point(NamedTuple):
    x: int
    y: int


@pytest.fixture(params=[shelve, shelf], ids=["shelve", "taiyen"])
def module(request):
    return request.param


def test_flags(module, tmp_path):
    path = str(tmp_path / "it")
    for flag in "rw":
        with pytest.raises(dbm.error):
            module.open(path, flag)
    with pytest.raises((ValueError, *dbm.error)):
        module.open(path, "x")
    with module.open(path) as it:
        it["a"] = 1
    with module.open(path, "c") as it:
        it["b"] = 2
    with module.open(path, flag="r") as it:
        assert dict(it) == {"a": 1, "b": 2}
    with module.open(path, "w") as it:
        del it["a"]
        assert dict(it) == {"b": 2}
    with module.open(path, "n") as it:
        assert dict(it) == {} and len(it) == 0


def test_read_only(tmp_path):
    with shelf.open(tmp_path / "it") as it:
        it["a"] = [1]
    with shelf.open(tmp_path / "it", "r") as it:
        for change in (lambda: it.__setitem__("b", 1), lambda: it.__delitem__("a"), it.clear, lambda: it["a"].append(2)):
            with pytest.raises(dbm.error):  # as of a dbm that is open for reading
                change()
        it.sync()
        assert it["a"] == [1]


def test_mapping(module, tmp_path):
    with module.open(str(tmp_path / "it")) as it:
        it["a"] = {"x": [1, (2, "z")]}
        it["b"] = Thing([1])
        it["é"] = None
        assert set(it) == {"a", "b", "é"} == set(it.keys()) and len(it) == 3 and "a" in it and "c" not in it
        assert it["a"] == {"x": [1, (2, "z")]} and it["b"] == Thing([1]) and it["é"] is None
        assert it.get("c") is None and it.get("c", 5) == 5 and it.get("é", 5) is None
        assert it.pop("a") == {"x": [1, (2, "z")]} and it.pop("a", 7) == 7
        assert it.setdefault("a", 1) == 1 and it.setdefault("a", 2) == 1
        it.update({"d": 4}, e=5)
        assert sorted(it.items(), key=str) == sorted([("a", 1), ("b", it["b"]), ("d", 4), ("e", 5), ("é", None)], key=str)
        for wrong in (lambda: it["c"], lambda: it.__delitem__("c"), lambda: it.pop("c")):
            with pytest.raises(KeyError):
                wrong()
        with pytest.raises((TypeError, AttributeError)):
            it[5] = 1
        assert isinstance(it, collections.abc.MutableMapping)
        it.clear()
        assert not it and list(it) == []


def test_closed(module, tmp_path):
    it = module.open(str(tmp_path / "it"))
    with it as same:
        assert same is it
        it["a"] = 1
    it.close()
    for use in (lambda: it["a"], lambda: it.__setitem__("a", 1), lambda: len(it), lambda: "a" in it, it.clear):
        with pytest.raises(ValueError):
            use()


def test_writeback(module, tmp_path):
    path = str(tmp_path / "it")
    with module.open(path, writeback=True) as it:
        it["list"], it["thing"] = [1], Thing([1])
        it["list"].append(2)
        it["thing"].parts.append(2)
        assert it["list"] == [1, 2] and it["thing"].parts == [1, 2]
        it.sync()
        it["list"].append(3)
        it["thing"].parts.append(3)
    with module.open(path, writeback=True) as it:
        assert it["list"] == [1, 2, 3] and it["thing"].parts == [1, 2, 3]
        it["thing"].parts.clear()
        del it["thing"]
        it["list"] = 5
    with module.open(path) as it:
        assert dict(it) == {"list": 5}


def test_writeback_of_all(module, tmp_path):
    path = str(tmp_path / "it")
    with module.open(path, writeback=True) as it:
        it["people"] = [Thing([0])]
        log = []
        it["log"], it["same"] = log, {"log": log}
        log.append("one")
        assert it["log"] is log
    with module.open(path, writeback=True) as it:
        it["people"][0].parts[0] = 40
        it["people"].append(it["people"][0])
        it["same"]["log"].append("two")
        deep = it["deep"] = {"a": {"b": Thing()}}
        deep["a"]["b"].parts.append(it["log"])
        assert type(it["people"]) is list and it["people"] is it["people"] and dict(it.items())["deep"] is deep
    with module.open(path) as it:
        assert it["people"] == [Thing([40]), Thing([40])] and list(it["log"]) == ["one"]
        assert it["same"] == {"log": ["one", "two"]} and it["deep"]["a"]["b"] == Thing([["one"]])


def test_dropped_without_close(module, tmp_path):
    path = str(tmp_path / "it")
    it = module.open(path, writeback=True)
    it["thing"] = Thing([1])
    it["thing"].parts.append(2)
    del it
    gc.collect()
    with module.open(path) as it:
        assert it["thing"] == Thing([1, 2])


def test_the_interpreters_end(tmp_path):
    program = "import sys; from taiyen import shelf; it = shelf.open(sys.argv[1], writeback=True); it['a'] = [1]; it['a'].append(2)"
    for name, more in (("one", ""), ("two", "; keep = [it]; keep.append(keep); import builtins; builtins.keep = keep")):
        result = subprocess.run([sys.executable, "-c", program + more, tmp_path / name], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, "")
        with shelf.open(tmp_path / name) as it:
            assert it["a"] == [1, 2]


def test_numpys(module, tmp_path):
    numpy = pytest.importorskip("numpy")
    scalars = [numpy.float64(2), numpy.float32(0.5), numpy.int8(-3), numpy.uint64(2**64 - 1), numpy.bool_(True),
               numpy.complex64(1 + 2j), numpy.str_("äb"), numpy.bytes_(b"c"), numpy.str_(""), numpy.float16(1.5),
               numpy.datetime64("2020-02-03"), numpy.timedelta64(5, "s"), numpy.longdouble("1.1")]  # fmt: skip
    arrays = [numpy.array(["a", "bc"]), numpy.array([1, "x", None], object), numpy.arange(6.0).reshape(2, 3),
              numpy.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]), numpy.array(["2020-01-01"], "M8[D]"),
              numpy.arange(3, dtype=">i4"), numpy.zeros((0, 2)), numpy.array(5), numpy.arange(4, dtype="c16"),
              numpy.rec.array([(1, 2.5)], names="a,b")]  # fmt: skip
    masked = numpy.ma.array([1, 2], mask=[0, 1])
    with module.open(str(tmp_path / "it")) as it:
        it["scalars"], it["arrays"], it["masked"] = scalars, arrays, masked
        for number, one in enumerate([*scalars, *arrays]):
            it[str(number)] = one
    with module.open(str(tmp_path / "it")) as it:
        assert [(type(one), one) for one in it["scalars"]] == [(type(one), one) for one in scalars]
        for number, one in enumerate([*scalars, *arrays]):
            assert type(it[str(number)]) is type(one) and it[str(number)].dtype.kind == one.dtype.kind
            assert numpy.array_equal(it[str(number)], one) and it[str(number)].shape == one.shape
        assert it["0"] + 1 == 3 and it["masked"].tolist() == [1, None] and it["15"].sum() == 15


def test_values_are_the_heaps(tmp_path):
    with shelf.open(tmp_path / "it", kind="transactional", log_bytes=1 << 20) as it:
        it["a"] = {"tags": []}
        it["a"]["tags"].append("port")  # lost by shelve
        old = it["a"]
        it["a"] = old  # what programs do for shelve
        assert it["a"] is old
        with it.heap.transaction():
            it["b"] = it["a"]
        it.sync()
        it["b"]["tags"].append("capital")
        assert it["a"]["tags"] == ["port"] and it["b"]["tags"] == ["port", "capital"] and it.heap.verify() == []
        it["a"] = it["b"]
        it.heap.discard()
        it.close()
    with shelf.open(tmp_path / "it", pickle=False) as it:
        assert it["a"]["tags"] == ["port", "capital"]
        with pytest.raises(TypeError):
            it["thing"] = Thing()
        assert "closed" not in repr(it)
    assert "closed" in repr(it)
    with pytest.raises(taiyen.FormatError):
        (tmp_path / "other").write_bytes(b"a file of something else" * 1000)
        shelf.open(tmp_path / "other", "n")


@pytest.mark.parametrize("writeback", [False, True])
def test_what_is_stored_is_a_copy(module, tmp_path, writeback):
    with module.open(str(tmp_path / "it"), writeback=writeback) as it:
        it["data"] = {"x": [1]}
        it["backup"], it["both"], it["deep"] = it["data"], [it["data"], it["data"]], ({"in": it["data"]},)
        data = it["data"]
        data["x"] = [2]
        it["data"] = data
        it.sync()
        assert it["data"] == {"x": [2]}
        if not writeback:  # which keeps the object itself
            assert it["backup"] == {"x": [1]} and it["both"] == [{"x": [1]}] * 2 and it["deep"] == ({"in": {"x": [1]}},)


def test_keys_that_no_heap_takes(module, tmp_path):
    path = str(tmp_path / "it")
    odd = {"prices": {Decimal("1.5"): [1]}, "sets": [{frozenset([1]): 2}], "named": {Point(1, 2): Thing([3])}}
    with module.open(path) as it:
        it.update(odd)
    with module.open(path, writeback=True) as it:
        assert dict(it) == odd
        it["prices"][Decimal("2.5")] = [2]
        it["sets"].append({Point(3, 4): 5})
    with module.open(path) as it:
        assert it["prices"] == {Decimal("1.5"): [1], Decimal("2.5"): [2]} and it["sets"][1] == {Point(3, 4): 5}


def test_changes_while_it_is_iterated_over(module, tmp_path):
    with module.open(str(tmp_path / "it")) as it:
        it.update({"a": 1, "b": 2})
        for key in it:
            it[key + "2"] = it.pop(key)
        assert sorted(it) == ["a2", "b2"]
        for key in it:
            del it[key]
        assert len(it) == 0


KEYS = st.text(max_size=3).filter(lambda key: key.isprintable())
VALUES = st.one_of(st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=3), st.none(),
                   st.dictionaries(KEYS, st.integers(), max_size=3),
                   st.builds(Thing, st.lists(st.integers(), max_size=2)))  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["set", "pop", "sync", "setdefault", "get", "popitem"]), KEYS, VALUES), max_size=30),
       st.booleans())  # fmt: skip
def test_at_random(tmp_path_factory, steps, writeback):
    model = {}
    path = tmp_path_factory.mktemp("shelf") / "it"
    it = shelf.open(path, writeback=writeback)
    for what, key, value in steps:
        if what == "set":
            it[key] = model[key] = value
        elif what == "sync":
            it.sync()
        elif what == "popitem":
            if model:
                key, taken = it.popitem()
                assert model.pop(key) == taken
        else:
            assert getattr(it, what)(key, value) == getattr(model, what)(key, value)
        assert taiyen.plain(dict(it)) == model
    it.close()
    with shelf.open(path, "r") as it:
        assert dict(it) == model
