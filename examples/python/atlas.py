"""The places of the world in a heap, from Python: 144,563 of them, loaded once, there at once in each later run.

    python atlas.py [HEAP]      HEAP: where it is kept (world.ty); made in the first run

Needs taiyen and numpy. The places come from examples/data/cities1000.csv.gz (GeoNames, CC BY 4.0).
"""

import csv
import gzip
import pathlib
import sys
import time

import numpy
import taiyen

DATA = pathlib.Path(__file__).parents[1] / "data/cities1000.csv.gz"
EARTH_KM = 6371.0


def load(heap):
    """Places as small dicts; indexes by name and by country; positions as an array, in the same order."""
    with gzip.open(DATA, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    places = [{"name": row["name"], "lat": float(row["lat"]), "lon": float(row["lon"]), "country": row["cc"],
               "regions": [row["admin1"], row["admin2"]]} for row in rows]  # fmt: skip
    names, countries = {}, {}
    for number, place in enumerate(places):
        names.setdefault(place["name"], []).append(number)
        countries.setdefault(place["country"], []).append(number)
    heap.root.update({"places": places, "names": names, "countries": countries})
    positions = heap.array("positions", (len(places), 2), "f8")
    positions[:] = [(place["lat"], place["lon"]) for place in places]
    del positions
    heap.snapshot()  # all of it, or nothing


def near(heap, lat, lon, count):
    """The places nearest to a point, with their distances: numpy, over the heap's own memory."""
    positions = numpy.radians(heap.array("positions"))
    here = numpy.radians((lat, lon))
    half = numpy.sin((positions - here) / 2) ** 2
    angle = half[:, 0] + numpy.cos(positions[:, 0]) * numpy.cos(here[0]) * half[:, 1]
    distance = 2 * EARTH_KM * numpy.arcsin(numpy.sqrt(angle))
    places = heap.root["places"]
    return [(places[int(number)], float(distance[number])) for number in numpy.argsort(distance)[:count]]


def timed(text, work):
    start = time.perf_counter()
    result = work()
    print(f"{text} [{(time.perf_counter() - start) * 1000:.1f} ms]")
    return result


def show(path):
    with timed(f"open {path}", lambda: taiyen.open(path)) as heap:
        root = heap.root
        if "positions" not in root:
            timed(f"loaded from {DATA.name}", lambda: load(heap))
        places, names, countries = root["places"], root["names"], root["countries"]
        print(f"{len(places)} places of {len(countries)} countries, {heap.stats()['used_bytes'] / 1e6:.1f} MB")
        found = timed("all that are called Lisbon", lambda: [places[number] for number in names["Lisbon"]])
        for place in found:
            print("  ", place["name"], place["country"], place["lat"], place["lon"])
        largest = timed("countries with the most places",
                        lambda: sorted(countries, key=lambda country: -len(countries[country]))[:3])  # fmt: skip
        print("  ", ", ".join(f"{country}: {len(countries[country])}" for country in largest))
        for place, distance in timed("the nearest to 38.7 N, 9.1 W", lambda: near(heap, 38.7, -9.1, 3)):
            print(f"   {place['name']}, {', '.join(filter(None, place['regions']))}: {distance:.1f} km")
        root["runs"] = root.get("runs", 0) + 1
        print(f"run {root['runs']} on this heap; the next one opens it as quickly")


if __name__ == "__main__":
    show(sys.argv[1] if len(sys.argv) > 1 else "world.ty")
