"""Typed use of the package: no line of it is an error, for mypy --strict and pyright."""

import asyncio
import pathlib
from collections.abc import Iterator, MutableMapping, MutableSequence
from typing import Annotated

import taiyen
from taiyen import shelf


@taiyen.record
class City:
    name: Annotated[str, 20]
    lat: float
    people: taiyen.u4 = 0


@taiyen.record(name="Point")
class Place:
    x: taiyen.f4
    y: taiyen.f4


def first_names(root: MutableMapping[str, object]) -> Iterator[str]:
    yield from root


def use(folder: pathlib.Path) -> int:
    with taiyen.open(folder / "use.ty", kind="transactional", limit=1 << 30, log_bytes=1 << 20) as heap:
        root: taiyen.Dict = heap.root
        root["cities"] = {"Lisbon": {"lat": 38.72, "tags": ["port"]}}
        tags: MutableSequence[str] = root["cities"]["Lisbon"]["tags"]
        tags.append("capital")
        with heap.transaction(wait=False) as transaction:
            root["visits"] = root.get("visits", 0) + 1
        lsn: int = transaction.lsn
        asyncio.run(heap.durable(lsn))
        names: list[str] = list(first_names(root))
        copied: dict[str, object] = taiyen.plain(root)
        pairs: list[tuple[str, object]] = sorted(root.items())
        is_durable: bool = heap.is_durable(lsn, wait=True)
        where: str | None = heap.path
        try:
            heap.undo()
        except taiyen.Error as error:
            remedy: str | None = error.remedy
            print(remedy, where, copied, pairs, is_durable)
    return len(names)


def walk(heap: taiyen.Heap) -> None:
    with heap.step("Move wall") as same:
        same.root["wall"] = [0, 0]
    with heap.attempt() as tried:
        tried.go_back()
    heap.mark("before")
    parents: list[str | None] = [mark.parent for mark in heap.marks()]
    heap.return_to("before")
    print(parents)
    for step in heap.history():
        print(step.label.upper(), step.time + 1.0, step.undone)
    grid = heap.array("grid", (100, 10), "f4")
    grid[:] = 0.5
    heap.pack("packed.ty", codec="zstd")
    print(taiyen.info("use.ty")["kind"], heap.map().strip(), heap.stats()["live_bytes"])


def list_cities(heap: taiyen.Heap) -> float:
    cities: taiyen.Records[City] = heap.records("cities", City)
    cities.append(City("Porto", 41.15, people=231_800))
    cities += [City("Lisbon", 38.72)]
    cities[1].people = 545_796
    cities[0] = City("Braga", 41.55)
    names: list[str] = [city.name for city in cities[:2]]
    cities.sort(key=lambda city: city.lat, reverse=True)
    heap.root["places"] = taiyen.records(Place, [Place(1.0, y=2.0)])
    print(names, cities.pop().name, cities.numpy(), taiyen.dtype(City).names)
    return sum(city.lat for city in cities)


def with_types(heap: taiyen.Heap) -> int:
    heap["ages"] = {"Ann": 40}
    ages: taiyen.Dict[str, int] = heap["ages"]
    names: taiyen.List[str] = heap.root.setdefault("names", ["Ann"])
    tags: taiyen.Set[str] = heap.root.setdefault("tags", {"a"})
    queue: taiyen.Deque[int] = heap.root["queue"]
    anything: taiyen.List = heap.root["anything"]
    first: str = names[0].upper() + names.pop()
    plain: dict[str, int] = ages.copy()
    oldest: int = max(ages.values()) + queue.pop()
    letters: set[str] = tags.union("b")
    same = taiyen.opened("use.ty") or taiyen.open("use.ty")
    print(first, plain, letters, anything, same.views(), "ages" in heap, [key for key in heap], heap.root["grid"].dtype)
    del heap["ages"]
    return oldest


def shelve(folder: pathlib.Path) -> None:
    with shelf.open(folder / "shelf.ty", "n", writeback=True, kind="transactional") as things:
        mapping: MutableMapping[str, object] = things
        mapping["tags"] = ["port"]
        things["tags"].append("capital")
        things.sync()
        print(things.heap.kind, things.popitem()[0].upper())
