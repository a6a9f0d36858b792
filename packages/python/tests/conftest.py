import os

import pytest
import taiyen
from hypothesis import settings

# How many times as much the long tests do.
EFFORT = float(os.environ.get("TAIYEN_EFFORT", "1"))
settings.register_profile("models", deadline=None, max_examples=max(5, int(15 * EFFORT)), stateful_step_count=40,
                          derandomize=False, print_blob=True)  # fmt: skip
settings.load_profile("models")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "heap.ty"


@pytest.fixture(params=["volatile", "snapshot", "transactional", "archive", "undo"])
def heap(request, path):
    """An open heap of each kind, and a snapshot heap with undo; what was done in it is sound at the end."""
    if request.param == "volatile":
        heap = taiyen.volatile()
    else:
        heap = taiyen.open(path, kind="snapshot" if request.param == "undo" else request.param,
                           log_bytes=1 << 20)
    if request.param == "undo":
        with heap.step():
            pass
    yield heap
    if not heap.closed:
        assert heap.verify() == []
        heap.close()
