"""The subjects: each a store as its users use it, and each durable where `durable` says how.

What is stored: `items`, documents by text keys, and `numbers`, whole numbers by text keys. `put` commits each item;
`fill` commits all at once; `update` changes one number in a document, and commits. Nobody who measures calls through a
function of ours where the store has `[]` of its own: `lookup` and the like hold the loop.
"""

import importlib
import json
import os
import pickle
import shelve
import time


class Store:
    """What the stores share: those that behave as a dict of documents need no more than `items` and `numbers`."""

    durable = ""
    modules = ()  # what it imports, which is not a part of an open

    def __init__(self, folder):
        for module in self.modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise Unavailable(f"it is not installed ({error})") from None
        self.folder = folder
        self.path = os.path.join(folder, "store")

    def lookup(self, keys):
        numbers = self.numbers
        for key in keys:
            numbers[key]

    def read(self, keys):
        items = self.items
        for key in keys:
            items[key]["lat"]

    def iterate(self):
        for _key, _number in self.numbers.items():
            pass

    def walk(self):
        for document in self.items.values():
            document["lat"]

    def bytes(self):
        """What it has on the disk, in blocks."""
        total = 0
        for folder, _, files in os.walk(self.folder):
            for name in files:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
        return total

    filled = bytes

    def until(self, seconds, keys, one):
        """Does `one` to the keys in turn, for so long at most; how many a second."""
        done = 0
        start = time.perf_counter()
        end = start + seconds
        for key in keys:
            one(key)
            done += 1
            if time.perf_counter() >= end:
                break
        return done / (time.perf_counter() - start)


class Taiyen(Store):
    durable = "a transactional heap: each commit waits for the disk"
    modules = ("taiyen",)
    options = {"kind": "transactional"}

    def open(self):
        import taiyen

        self.heap = taiyen.open(self.path, limit=64 << 30, **self.options)
        root = self.heap.root
        if "items" not in root:
            root["items"], root["numbers"] = {}, {}
        self.items, self.numbers = root["items"], root["numbers"]

    def close(self):
        del self.items, self.numbers
        self.heap.close()

    def fill(self, items, numbers=()):
        with self.heap.transaction():
            self.items.update(items)
            self.numbers.update(numbers)

    def filled(self):
        return self.heap.stats()["used_bytes"]  # without the log, which may be larger

    def put(self, key, document):
        self.items[key] = document

    def update(self, key):
        self.items[key]["visits"] += 1


class TaiyenSnapshot(Taiyen):
    """The same in a snapshot heap: what is durable is the last snapshot."""

    durable = "a snapshot heap: durable by snapshot()"
    options = {"kind": "snapshot"}

    def fill(self, items, numbers=()):
        self.items.update(items)
        self.numbers.update(numbers)
        self.heap.snapshot()

    def put(self, key, document):
        self.items[key] = document
        self.heap.snapshot()

    def update(self, key):
        self.items[key]["visits"] += 1
        self.heap.snapshot()


class Dict(Store):
    durable = "nothing: the built-in, in memory"

    def open(self):
        self.items, self.numbers = {}, {}

    def close(self):
        pass

    def fill(self, items, numbers=()):
        self.items.update(pickle.loads(pickle.dumps(items)))  # a copy of its own, as the others have
        self.numbers.update(numbers)

    def put(self, key, document):
        self.items[key] = document

    def update(self, key):
        self.items[key]["visits"] += 1


class Shelve(Store):
    """Of dbm.gnu, which is what shelve takes where it is there; Debian has it in python3-gdbm."""

    durable = "shelve over dbm.gnu, sync() after each commit: it waits for the disk"
    modules = ("dbm.gnu",)

    def open(self):
        import dbm.gnu

        self.items = shelve.Shelf(dbm.gnu.open(self.path, "c"))
        self.numbers = shelve.Shelf(dbm.gnu.open(self.path + "-numbers", "c"))

    def close(self):
        self.items.close()
        self.numbers.close()

    def fill(self, items, numbers=()):
        for key, document in items.items():
            self.items[key] = document
        self.items.sync()
        self.numbers.update(numbers)
        self.numbers.sync()

    def put(self, key, document):
        self.items[key] = document
        self.items.sync()

    def update(self, key):
        document = self.items[key]
        document["visits"] += 1
        self.items[key] = document
        self.items.sync()


class Sqlite(Store):
    durable = "sqlite3 with JSON, journal_mode=WAL, synchronous=FULL: each commit waits for the disk"
    modules = ("sqlite3",)

    def open(self):
        import sqlite3

        self.database = sqlite3.connect(self.path)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=FULL")
        for table in ("items", "numbers"):
            self.database.execute(f"CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, value) WITHOUT ROWID")

    def close(self):
        self.database.close()

    def fill(self, items, numbers=()):
        with self.database:
            self.database.executemany("REPLACE INTO items VALUES (?, ?)",
                                      ((key, json.dumps(document)) for key, document in items.items()))
            self.database.executemany("REPLACE INTO numbers VALUES (?, ?)", numbers and numbers.items())

    def put(self, key, document):
        with self.database:
            self.database.execute("REPLACE INTO items VALUES (?, ?)", (key, json.dumps(document)))

    def update(self, key):
        with self.database:
            self.database.execute("UPDATE items SET value = json_set(value, '$.visits', "
                                  "json_extract(value, '$.visits') + 1) WHERE key = ?", (key,))

    def lookup(self, keys):
        execute = self.database.execute
        for key in keys:
            execute("SELECT value FROM numbers WHERE key = ?", (key,)).fetchone()[0]

    def read(self, keys):
        execute = self.database.execute
        for key in keys:
            json.loads(execute("SELECT value FROM items WHERE key = ?", (key,)).fetchone()[0])["lat"]

    def iterate(self):
        for _key, _number in self.database.execute("SELECT key, value FROM numbers"):
            pass

    def walk(self):
        for (text,) in self.database.execute("SELECT value FROM items"):
            json.loads(text)["lat"]


class Lmdb(Store):
    durable = "lmdb with pickle, sync=True: each commit waits for the disk"
    modules = ("lmdb",)

    def open(self):
        import lmdb

        self.environment = lmdb.open(self.path, map_size=64 << 30, max_dbs=2, sync=True)
        self.items = self.environment.open_db(b"items")
        self.numbers = self.environment.open_db(b"numbers")

    def close(self):
        self.environment.close()

    def fill(self, items, numbers=()):
        with self.environment.begin(write=True) as transaction:
            for key, document in items.items():
                transaction.put(key.encode(), pickle.dumps(document, -1), db=self.items)
            for key, number in numbers and numbers.items():
                transaction.put(key.encode(), pickle.dumps(number, -1), db=self.numbers)

    def put(self, key, document):
        with self.environment.begin(write=True, db=self.items) as transaction:
            transaction.put(key.encode(), pickle.dumps(document, -1))

    def update(self, key):
        with self.environment.begin(write=True, db=self.items) as transaction:
            document = pickle.loads(transaction.get(key.encode()))
            document["visits"] += 1
            transaction.put(key.encode(), pickle.dumps(document, -1))

    def lookup(self, keys):
        with self.environment.begin(db=self.numbers) as transaction:
            for key in keys:
                pickle.loads(transaction.get(key.encode()))

    def read(self, keys):
        with self.environment.begin(db=self.items) as transaction:
            for key in keys:
                pickle.loads(transaction.get(key.encode()))["lat"]

    def iterate(self):
        with self.environment.begin(db=self.numbers) as transaction:
            for key, number in transaction.cursor():
                key.decode(), pickle.loads(number)

    def walk(self):
        with self.environment.begin(db=self.items) as transaction:
            for _, document in transaction.cursor():
                pickle.loads(document)["lat"]


class Zodb(Store):
    """Documents are PersistentMappings in a BTree, so a change of one writes that one; the cache holds them all."""

    durable = "ZODB with FileStorage: each commit waits for the disk"
    modules = ("ZODB", "ZODB.FileStorage", "BTrees.OOBTree", "persistent.mapping")

    def open(self):
        import transaction
        import ZODB
        from BTrees.OOBTree import OOBTree
        from persistent.mapping import PersistentMapping

        self.transaction, self.mapping = transaction, PersistentMapping
        self.database = ZODB.DB(self.path, cache_size=1_000_000)
        self.connection = self.database.open()
        root = self.connection.root()
        if "items" not in root:
            root["items"], root["numbers"] = OOBTree(), OOBTree()
            transaction.commit()
        self.items, self.numbers = root["items"], root["numbers"]

    def close(self):
        self.connection.close()
        self.database.close()

    def fill(self, items, numbers=()):
        for key, document in items.items():
            self.items[key] = self.mapping(document)
        self.numbers.update(numbers)
        self.transaction.commit()

    def put(self, key, document):
        self.items[key] = self.mapping(document)
        self.transaction.commit()

    def update(self, key):
        self.items[key]["visits"] += 1
        self.transaction.commit()


class Diskcache(Store):
    durable = "diskcache with sqlite_synchronous=2 (not its default, 1, which waits for no commit)"
    modules = ("diskcache",)

    def open(self):
        import diskcache

        options = {"eviction_policy": "none", "size_limit": 64 << 30, "sqlite_synchronous": 2}
        self.items = diskcache.Cache(self.path, **options)
        self.numbers = diskcache.Cache(self.path + "-numbers", **options)

    def close(self):
        self.items.close()
        self.numbers.close()

    def fill(self, items, numbers=()):
        for cache, pairs in (self.items, items), (self.numbers, numbers):
            with cache.transact():
                for key in pairs:
                    cache[key] = pairs[key]

    def put(self, key, document):
        self.items[key] = document

    def update(self, key):
        with self.items.transact():
            document = self.items[key]
            document["visits"] += 1
            self.items[key] = document

    def iterate(self):
        for key in self.numbers:
            self.numbers[key]

    def walk(self):
        for key in self.items:
            self.items[key]["lat"]


class Pickle(Store):
    """All of it in one file, written anew and renamed for each commit."""

    durable = "pickle of everything, fsync of the file and of its folder for each commit"

    def open(self):
        self.items, self.numbers = {}, {}
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                self.items, self.numbers = pickle.load(file)

    def close(self):
        pass

    def commit(self):
        with open(self.path + ".new", "wb") as file:
            pickle.dump((self.items, self.numbers), file, -1)
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.path + ".new", self.path)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def fill(self, items, numbers=()):
        self.items.update(items)
        self.numbers.update(numbers)
        self.commit()

    def put(self, key, document):
        self.items[key] = document
        self.commit()

    def update(self, key):
        self.items[key]["visits"] += 1
        self.commit()


class Unavailable(Exception):
    """A subject that cannot be measured here, and why."""


STORES = {"taiyen": Taiyen, "taiyen-snapshot": TaiyenSnapshot, "dict": Dict, "shelve": Shelve, "sqlite3": Sqlite,
          "lmdb": Lmdb, "zodb": Zodb, "diskcache": Diskcache, "pickle": Pickle}  # fmt: skip
