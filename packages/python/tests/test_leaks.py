"""Goal: no operation keeps references, objects or the heap's blocks. Method: leaks.py, a few hundred rounds of each operation
(ten million by hand); and the same with one that leaks, which is reported."""

import leaks
import pytest


@pytest.mark.parametrize("function, kind", leaks.cases(), ids=lambda one: getattr(one, "__name__", one))
def test_leaks(function, kind, tmp_path):
    assert leaks.leaks(function, kind, tmp_path, 600) == []


def test_a_leak_is_reported(tmp_path):
    kept = []
    numbers = iter(range(10_000))

    def keeps(d):
        kept.append([leaks.SMALL])

    def keeps_a_block(d):
        d[f"a key of some length {next(numbers)}"] = 1

    reported = leaks.leaks(keeps, "volatile", tmp_path, 600)
    assert any("references" in text for text in reported) and any("objects" in text for text in reported)
    assert any("blocks" in text for text in leaks.leaks(keeps_a_block, "volatile", tmp_path, 600))
