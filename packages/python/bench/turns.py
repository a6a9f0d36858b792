"""What one subject does in one turn, in a process of its own; each gives rows of case, metric, unit, value."""

import gc
import itertools
import os
import pickle
import random
import statistics
import time

from stores import STORES


def documents(count):
    """Small dicts as programs have them: five fields, one of them a list. The same ones for each subject."""
    source = random.Random(38)
    made = {}
    for number in range(count):
        name = "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(4, 14))).title()
        made[f"place-{number:06}"] = {
            "name": name, "lat": round(source.uniform(-90, 90), 5), "lon": round(source.uniform(-180, 180), 5),
            "tags": [source.choice(("port", "capital", "village", "seat")), name[:2].upper()], "visits": 0,
        }  # fmt: skip
    return made


def keys_of(count, seed, prefix):
    """All keys in random order: other objects than those that are stored, as keys that come from outside are."""
    numbers = list(range(count))
    random.Random(seed).shuffle(numbers)
    return [f"{prefix}-{number:06}" for number in numbers]


def bare(keys):
    for _ in keys:
        pass


def a_second(count, work, *arguments, loop=None):
    """How many a second, of the quickest of three laps: a lap that was interrupted says nothing of the store."""
    laps = []
    for _ in range(3):
        start = time.perf_counter()
        work(*arguments)
        laps.append(time.perf_counter() - start)
    if loop is not None:  # the loop itself is nobody's
        start = time.perf_counter()
        bare(loop)
        return count / max(min(laps) - (time.perf_counter() - start), 1e-9)
    return count / min(laps)


def store_each(subject, folder, settings):
    store = STORES[subject](folder)
    store.open()
    items = documents(settings.items)
    keys = list(items)
    if subject == "pickle":  # which takes longer the more there is: its mean is that of a store that is half full
        half = len(keys) // 2
        store.items.update((key, items[key]) for key in keys[:half])
        keys = keys[half:]
    rate = store.until(settings.seconds, keys, lambda key: store.put(key, items[key]))
    store.close()
    yield "store-each", "ops_per_s", "1/s", rate


def objects(subject, folder, settings):
    store = STORES[subject](folder)
    store.open()
    count = settings.items
    items = documents(count)
    numbers = {f"number-{number:06}": number for number in range(count)}
    start = time.perf_counter()
    store.fill(items)
    yield "store-bulk", "ops_per_s", "1/s", count / (time.perf_counter() - start)
    if subject != "dict":
        store.close()
        yield "store-bulk", "bytes", "bytes", store.bytes()
        store.open()
    store.fill({}, numbers)
    yield "update", "ops_per_s", "1/s", store.until(settings.seconds, itertools.cycle(keys_of(count, 1, "place")),
                                                    store.update)
    keys = keys_of(count, 2, "number")
    yield "lookup", "ops_per_s", "1/s", a_second(count, store.lookup, keys, loop=keys)
    places = keys_of(count, 3, "place")
    yield "lookup-nested", "ops_per_s", "1/s", a_second(count, store.read, places, loop=places)
    yield "iterate", "ops_per_s", "1/s", a_second(count, store.iterate)
    yield "iterate-nested", "ops_per_s", "1/s", a_second(count, store.walk)
    store.close()


def store_again(mapping, keys):
    for key in keys:
        mapping[key] = 7


def store_keys(subject, folder, settings):
    """Stores under keys that are there, and under new ones, without waiting for a disk."""
    store = STORES[subject](folder)
    store.open()
    count = settings.items
    keys = keys_of(count, 4, "number")
    store.fill({}, {f"number-{number:06}": number for number in range(count)})
    yield "store", "ops_per_s", "1/s", a_second(count, store_again, store.numbers, keys, loop=keys)
    laps = []
    for _ in range(3):
        store.numbers.clear()
        start = time.perf_counter()
        store_again(store.numbers, keys)
        laps.append(time.perf_counter() - start)
    yield "store-new", "ops_per_s", "1/s", count / min(laps)
    store.close()


def list_bytes(subject, folder, settings):
    """What a list of small dicts takes on the disk, and pickled: as a whole, and each by itself, as stores have them."""
    small = [{key: round(value, 2) if type(value) is float else value for key, value in document.items()
              if key != "visits"} for document in documents(settings.items).values()]  # fmt: skip
    if subject == "pickle":
        size = len(pickle.dumps(small, -1))
    elif subject == "pickle-each":
        size = sum(len(pickle.dumps(document, -1)) for document in small)
    else:
        store = STORES[subject](folder)
        store.open()
        store.numbers["list"] = small
        store.close()
        size = store.bytes()
    yield "list", "bytes", "bytes", size


def fill_file(subject, folder, target):
    """Fills a store with documents of a kilobyte until it takes so many bytes; the key of one of them."""
    store = STORES[subject](folder)
    store.open()
    places = list(documents(12).values())
    number, step = 0, min(max(target // 10_000, 10), 20_000)
    if subject == "pickle":  # which writes all of it with each commit: it gets two
        step = max(target // 2000, 10)
    while number == 0 or store.filled() < target:
        store.fill({f"document-{at:09}": {"number": at, "lat": at * 0.00001, "places": places}
                    for at in range(number, number + step)})  # fmt: skip
        number += step
    store.close()
    return f"document-{number // 2:09}"


def open_file(subject, folder, key):
    """Opens a store that is there, and takes one value of it."""
    store = STORES[subject](folder)
    gc.collect()
    start = time.perf_counter()
    store.open()
    store.read([key])
    took = time.perf_counter() - start
    store.close()
    return took * 1000


def arrays(subject, folder, settings):
    """Sum and assignment of an array of floats: memory that was touched before, as often as fits in the time."""
    import numpy

    shape = (settings.array_bytes // 8,)
    path = os.path.join(folder, "array")
    heap = None
    if subject == "taiyen":
        import taiyen

        heap = taiyen.open(path)
        array = heap.array("array", shape, "f8")
    elif subject == "memmap":
        array = numpy.memmap(path, dtype="f8", mode="w+", shape=shape)
    else:
        array = numpy.empty(shape)
    other = numpy.arange(shape[0], dtype="f8")
    array[:] = other
    for case, work in ("array-sum", lambda: array.sum()), ("array-assign", lambda: array.__setitem__(..., other)):
        laps = []
        for _ in range(15):
            start = time.perf_counter()
            work()
            laps.append(time.perf_counter() - start)
        yield case, "ops_per_s", "1/s", 1 / statistics.median(laps)
    del array, work
    if heap is not None:
        heap.discard()


def fill_array(folder, target):
    import numpy

    path = os.path.join(folder, "store")
    array = numpy.memmap(path, dtype="f8", mode="w+", shape=(max(target // 8, 1),))
    array[:] = 1
    array.flush()
    return ""


def open_array(folder):
    import numpy

    start = time.perf_counter()
    array = numpy.memmap(os.path.join(folder, "store"), dtype="f8", mode="r+")
    float(array[len(array) // 2])
    return (time.perf_counter() - start) * 1000


def fill_for_open(subject, folder, target):
    return fill_array(folder, target) if subject == "memmap" else fill_file(subject, folder, target)


def open_once(subject, folder, key):
    return open_array(folder) if subject == "memmap" else open_file(subject, folder, key)


ALL = list(STORES)
# Each: what runs it, its cases, its subjects.
GROUPS = {
    "store-each": (store_each, ("store-each",), ALL),
    "objects": (objects, ("store-bulk", "update", "lookup", "lookup-nested", "iterate", "iterate-nested"), ALL),
    "store": (store_keys, ("store", "store-new"), ("taiyen-snapshot", "dict")),
    "list": (list_bytes, ("list",), ("taiyen-snapshot", "pickle", "pickle-each")),
    "arrays": (arrays, ("array-sum", "array-assign"), ("taiyen", "numpy", "memmap")),
}


def run_group(name, subject, folder, settings):
    return list(GROUPS[name][0](subject, folder, settings))


def answer(pipe, work, *arguments):
    """What a turn's process runs: it sends back what came of it."""
    try:
        pipe.send(work(*arguments))
    except Exception as error:
        pipe.send(error)
