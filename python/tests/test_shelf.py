"""Goal: a program that uses shelve does the same with taiyen.shelf. Method: the same steps with both, on purpose and at random;
then what only a heap does."""

import collections
import dbm
import shelve

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


def test_values_are_the_heaps(tmp_path):
    with shelf.open(tmp_path / "it", kind="transactional", log_bytes=1 << 20) as it:
        it["a"] = {"tags": []}
        it["a"]["tags"].append("port")  # lost by shelve
        old = it["a"]
        it["a"] = old  # what programs do for shelve
        with it.heap.transaction():
            it["b"] = it["a"]
        it.sync()
        it["b"]["tags"].append("capital")
        assert it["a"]["tags"] == ["port", "capital"] and it.heap.verify() == []
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
