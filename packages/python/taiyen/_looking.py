"""What keeps a heap from being closed. Looked for when that is asked, or when a close is refused."""

import builtins
import itertools
import sys

from ._containers import Dict, List
from ._errors import LiveViewsError

_MOST = 20_000  # items that are looked at for where an array is stored


def _source(view):
    """The array or list of records whose memory a numpy array or memoryview shows; else what it ends at."""
    numpy = sys.modules.get("numpy")
    for _ in range(100):
        if isinstance(view, memoryview):
            view = view.obj
        elif numpy is not None and isinstance(view, numpy.ndarray):
            view = view.base
        else:
            break
    return view


def _holders(source):
    """Names by which the program's main module leads to views of it, and whether IPython's output is among them."""
    main = vars(sys.modules["__main__"]).copy() if "__main__" in sys.modules else {}
    main.setdefault("_", getattr(builtins, "_", None))  # what the interactive interpreter has displayed last
    outputs = main.get("Out")
    names = [name for name, one in main.items() if one is not source and _source(one) is source]
    if isinstance(outputs, dict):
        names += [f"Out[{number}]" for number, one in outputs.items() if _source(one) is source]
    return sorted(names), isinstance(outputs, dict) and any(name.startswith(("_", "Out[")) for name in names)


def _places(heap, sources):
    """Where each is stored, by its id; of a large heap not all are found."""
    places, left, met, looked_at = {}, [("root", heap.root)], set(), 0
    while left and len(places) < len(sources) and looked_at < _MOST:
        where, container = left.pop(0)
        items = container.items() if type(container) is Dict else enumerate(container)
        for key, value in itertools.islice(items, _MOST - looked_at):
            looked_at += 1
            path = f"{where}[{key!r}]"
            if any(value is source for source in sources):
                places.setdefault(id(value), path)
            elif type(value) in (Dict, List) and id(value) not in met:
                met.add(id(value))
                left.append((path, value))  # which keeps it, and its id
    return places


def _look(heap):
    """(texts, what to do besides)."""
    viewed = heap._viewed()
    places = {}
    if not heap._is_parents:
        try:
            places = _places(heap, [source for source, _ in viewed])
        except Exception:  # of values that cannot be read now: their places are not reported
            pass
    texts, is_displayed = [], False
    for source, count in viewed:
        try:
            what = f"<taiyen.Records of {source.of.__name__}, {len(source)}>" if hasattr(source, "of") else repr(source)
        except Exception:  # the parent's, in a forked child
            what = f"<taiyen.{type(source).__name__}>"
        names, displayed = _holders(source)
        is_displayed |= displayed
        held = f" ({', '.join(names)})" if names else ""
        texts.append(f"{places.get(id(source), 'something')} {what} has {count} view{'s' if count != 1 else ''}{held}")
    return sorted(texts), is_displayed


def views(heap):
    return _look(heap)[0]


def refused(heap, error):
    """The same LiveViewsError, with what the views are."""
    texts, is_displayed = _look(heap)
    remedy = "delete the arrays and memoryviews that lead into the heap first"
    if is_displayed:
        remedy += "; what IPython has displayed is forgotten by %reset -f out"
    what = str(error).partition(";")[0]
    return LiveViewsError(f"{what}: {'; '.join(texts)}; {remedy}" if texts else str(error), error.status, heap.path, remedy)
