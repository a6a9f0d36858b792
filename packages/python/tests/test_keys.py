"""Keys and values come back as what was stored: 1, 1.0, True and 1+0j are one key, and four of these, as are 0.0 and -0.0.

The story: dicts with the same keys have these in common in a heap. They were looked for by ==, so {1: ...} came back as {True: ...}
where another dict of the heap had True.
"""

import itertools
import json
import math

import pytest
import taiyen
from hypothesis import given
from hypothesis import strategies as st

BIG = 2**70
EQUAL = [
    [1, True, 1.0, 1 + 0j, complex(1, -0.0)],
    [0, False, 0.0, -0.0, 0j, complex(-0.0, 0)],
    [BIG, float(BIG), complex(BIG)],
    [2**53, float(2**53)],
    [-(2**60), -float(2**60)],
    [complex(0.0, 2), complex(-0.0, 2)],
    [(1, "a"), (True, "a"), (1.0, "a")],
    [((0.0, None), 2), ((-0.0, None), 2), ((0, None), 2.0), ((False, None), 2)],
    ["1", b"1"],
    ["a text of some length", b"a text of some length"],
]


def written(value):
    """What distinguishes equal values."""
    if isinstance(value, complex):
        return "complex", written(value.real), written(value.imag)
    if isinstance(value, float):
        return "float", math.copysign(1, value), repr(value)
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [written(one) for one in value]
    if isinstance(value, dict):
        return "dict", [(written(key), written(item)) for key, item in value.items()]
    return type(value).__name__, repr(value)


def same(value, wanted):
    return written(taiyen.plain(value)) == written(wanted)


@pytest.mark.parametrize("keys", EQUAL, ids=repr)
def test_keys_come_back_as_they_were_written(heap, keys):
    root = heap.root
    for first, key in itertools.permutations(keys, 2):
        root["before"] = [{"ok": 1, first: "other"} for _ in range(2)]  # what a dict with an equal key comes after
        stored = {"ok": 1, key: "mine"}
        root["alone"] = dict(stored)
        root["rows"] = [dict(stored), [dict(stored)], {"deep": dict(stored)}]
        root["rows"].append(dict(stored))
        root["set"] = {key}
        for one in (root["alone"], root["rows"][0], root["rows"][1][0], root["rows"][2]["deep"], root["rows"][3]):
            assert same(one, stored)
            assert [written(given) for given in one] == [written(given) for given in stored]
            assert written(list(one.items())[1]) == written((key, "mine"))
        assert [written(one) for one in root["set"]] == [written(key)]
        assert same(root["before"], [{"ok": 1, first: "other"}] * 2)
        alone = root["alone"]
        alone["more"] = 1  # an ordinary dict is made of it
        assert same(alone, {**stored, "more": 1})
        assert written(alone.popitem()) == written(("more", 1)) and written(alone.popitem()) == written((key, "mine"))


@pytest.mark.parametrize("keys", EQUAL[:8], ids=repr)
def test_a_dict_keeps_the_first_of_equal_keys(heap, keys):
    """As the built-in's: what is stored for an equal key stands for the first one."""
    for first, key in itertools.permutations(keys, 2):
        for stored in ({first: "first"}, [{first: "first"}, {first: "first"}]):
            heap.root["d"] = stored
            one, model = (heap.root["d"], {first: "first"}) if isinstance(stored, dict) else (heap.root["d"][1], {first: "first"})
            assert one[key] == "first" and key in one and one.get(key) == "first"
            one[key] = model[key] = "second"
            one.update({key: "third"})
            model.update({key: "third"})
            assert one.setdefault(key, "fourth") == model.setdefault(key, "fourth")
            assert same(one, model)
            del one[key], model[key]
            one[key] = model[key] = "new"
            assert same(one, model)
            assert one.pop(first) == model.pop(first)
        heap.root["s"] = {first}
        heap.root["s"].add(key)
        heap.root["s"].update([key])
        assert [written(given) for given in heap.root["s"]] == [written(first)]


KEYS = st.sampled_from([key for keys in EQUAL for key in keys])
VALUES = st.recursive(st.sampled_from([0, 0.0, -0.0, False, 1, 1.0, True, "", b"", None, BIG, float(BIG), 1 + 0j]),
                      lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3) |
                      st.tuples(inner, inner), max_leaves=12)  # fmt: skip


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=6))
def test_whatever_is_stored_comes_back_as_it_was(all_stored):
    with taiyen.volatile() as heap:
        for _ in range(2):
            for number, stored in enumerate(all_stored):
                heap.root[number] = stored
                heap.root["all", number] = [stored, {"again": stored}]
        for number, stored in enumerate(all_stored):
            assert same(heap.root[number], stored)
            assert same(heap.root["all", number], [stored, {"again": stored}])
        assert heap.verify() == []


def test_json_is_that_of_what_was_stored(heap):
    heap.root["flags"] = [{"ok": 1, True: "on"}] * 2
    heap.root["ranks"] = {"ok": 1, 1: "first"}
    assert json.dumps(heap.root["ranks"], default=taiyen.plain) == '{"ok": 1, "1": "first"}'
