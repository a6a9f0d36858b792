"""Misuse of the package: each line with `# error` is one for mypy --strict and pyright, and no other line is."""

from typing import Annotated

import taiyen
from taiyen import shelf


@taiyen.record
class City:
    name: Annotated[str, 20]
    lat: float


heap = taiyen.volatile()
taiyen.open(5)  # error
taiyen.open("a.ty", kind="relational")  # error
taiyen.open("a.ty", create="yes")  # error
taiyen.open("a.ty", limits=5)  # error
heap.snapshot().upper()  # error
heap.transaction(False)  # error
heap.mark(5)  # error
heap.pack("b.ty", codec="gzip")  # error
heap.roots  # error
heap.root.append(1)  # error
heap.history()[0].name  # error
number: int = heap.verify()  # error
heap.kind = "archive"  # error
taiyen.Hepa  # error
City("Lisbon")  # error
City("Lisbon", lat="38.72")  # error
heap.records("cities", City).append("Lisbon")  # error
heap.records("cities", City)[0].people  # error
taiyen.records(5)  # error
ages: taiyen.Dict[str, int] = heap.root["ages"]
ages["Ann"].upper()  # error
names: taiyen.List[str] = heap.root["names"]
names[0] + 1  # error
taiyen.opened("a.ty").close()  # error
shelf.open("a.ty", "rw")  # error
shelf.open("a.ty")[5] = 1  # error
