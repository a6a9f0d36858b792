"""Misuse of the package: each line with `# error` is one for mypy --strict and pyright, and no other line is."""

import taiyen

heap = taiyen.volatile()
taiyen.open(5)  # error
taiyen.open("a.ty", kind="relational")  # error
taiyen.open("a.ty", create="yes")  # error
taiyen.open("a.ty", limits=5)  # error
heap.snapshot().upper()  # error
heap.transaction(False)  # error
heap.pack("b.ty", codec="gzip")  # error
heap.roots  # error
heap.root.append(1)  # error
heap.history()[0].name  # error
number: int = heap.verify()  # error
heap.kind = "archive"  # error
taiyen.Hepa  # error
