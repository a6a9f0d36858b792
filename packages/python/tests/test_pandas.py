"""Goal: pandas and numpy take what is in a heap for what the plain object is. Method: both, compared.

pandas asks `isinstance(it, dict)`: a heap's dict was taken for a list of its keys, silently."""

import numpy
import pytest
import taiyen

pandas = pytest.importorskip("pandas")

VALUES = {
    "columns": {"b": [1, 2, 3], "a": [4.5, 5.5, 6.5]},
    "columns of texts": {"name": ["Lisbon", None], "tags": [["port"], []]},
    "numbers": {"x": 1, "w": 2},
    "rows": [{"b": 1, "a": 2}, {"b": 3, "c": 4}],
    "rows of lists": [[1, 2], [3, 4]],
    "nested": {"b": {"r2": 1, "r1": 2}, "a": {"r2": 3}},
    "arrays": {"b": numpy.arange(3, dtype="f4"), "a": numpy.array([1, 0, 1], "?")},
    "many": {f"column {n}": list(range(1000)) for n in range(50)},
    "a list": [1.5, 2.5],
    "empty": {},
    "root": {"x": [1], "y": ["z"]},
}


@pytest.mark.parametrize("name", VALUES)
def test_frames(path, name):
    with taiyen.open(path) as heap:
        heap.root.update(VALUES[name]) if name == "root" else heap.root.update(it=VALUES[name])
        it = heap.root if name == "root" else heap.root["it"]
        if name != "numbers":
            assert pandas.DataFrame(it).equals(pandas.DataFrame(VALUES[name]))
            assert list(pandas.DataFrame(it).columns) == list(pandas.DataFrame(VALUES[name]).columns)
        if name in ("numbers", "a list", "rows of lists", "columns of texts"):
            assert pandas.Series(it).equals(pandas.Series(VALUES[name]))
        if isinstance(VALUES[name], dict) and name != "numbers":
            assert pandas.DataFrame.from_dict(it).equals(pandas.DataFrame.from_dict(VALUES[name]))
        if isinstance(VALUES[name], list) and name != "rows":
            assert numpy.array_equal(numpy.array(it), numpy.array(VALUES[name]))
        assert heap._views == 0  # what was made are copies: the heap can be closed


def test_frames_of_arrays_and_records(path):
    @taiyen.record
    class City:
        name: taiyen.text(20)
        lat: float

    with taiyen.open(path) as heap:
        heap.root["grid"] = numpy.arange(6, dtype="f4").reshape(3, 2)
        assert pandas.DataFrame(heap.root["grid"]).equals(pandas.DataFrame(numpy.arange(6, dtype="f4").reshape(3, 2)))
        heap.root["row"] = numpy.arange(3)
        assert pandas.Series(heap.root["row"], copy=True).equals(pandas.Series(numpy.arange(3)))
        heap.root["cities"] = [City("Lisbon", 38.72), City("Porto", 41.15)]
        frame = pandas.DataFrame(heap.root["cities"])
        assert list(frame.columns) == ["name", "lat"] and list(frame["lat"]) == [38.72, 41.15]
        del frame


def test_a_dict_is_one_to_who_asks(heap):
    heap.root["d"] = {"a": 1}
    found = heap.root["d"]
    assert isinstance(found, dict) and isinstance(found, taiyen.Dict) and not isinstance(found, list)
    heap.root["l"] = [1]
    items = heap.root["l"]
    assert isinstance(items, list) and isinstance(items, taiyen.List) and not isinstance(items, (dict, tuple))
    assert type(items) is taiyen.List and items == [1] and [0] + items == [0, 1]
    assert type(found) is taiyen.Dict and not isinstance(heap.root.keys(), dict)
    assert {**found} == dict(found) == found.copy() == {"a": 1} and type(taiyen.plain(found)) is dict
