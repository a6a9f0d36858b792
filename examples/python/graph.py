"""A graph that survives: a program that changes it is killed again and again, and no change is lost or halved.

    python graph.py [--kills N]

Read it from top to bottom, as a notebook. Needs taiyen alone.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile

import taiyen

# A node is a dict: a name, and the nodes that it leads to. These are the nodes themselves, not their names: a graph of
# ordinary containers, with cycles, as in any Python program. It lives in the heap.
def make(heap):
    with heap.transaction():
        heap.root["nodes"] = {f"node-{number}": {"edges": [], "in": 0} for number in range(200)}
        heap.root["edges"] = 0


# A change has three parts that belong together: an edge, the number of edges to its end, and the number of all edges.
def grow(heap, source):
    nodes = heap.root["nodes"]
    one, other = source.choice(sorted(nodes)), source.choice(sorted(nodes))
    with heap.transaction():
        nodes[one]["edges"].append(nodes[other])
        nodes[other]["in"] += 1
        heap.root["edges"] += 1
    return heap.root["edges"]


# The program that is killed: it changes the graph, and reports when the change is durable.
def work(path):
    source = random.Random()
    with taiyen.open(path) as heap:
        while True:
            print(grow(heap, source), flush=True)


# What must hold at any moment: the three parts agree, and each edge leads to a node of the graph.
def check(path, said):
    with taiyen.open(path) as heap:
        nodes = heap.root["nodes"]
        ends = [end for node in nodes.values() for end in node["edges"]]
        assert len(ends) == sum(node["in"] for node in nodes.values()) == heap.root["edges"]
        assert heap.root["edges"] >= said, "a change that was durable is lost"
        assert heap.verify() == []
        return heap.root["edges"]


# The nodes reachable from the first one: a walk over the heap's own containers.
def reached(path):
    with taiyen.open(path) as heap:
        first = heap.root["nodes"]["node-0"]
        seen, rest = {id(first): first}, [first]
        while rest:
            for end in rest.pop()["edges"]:
                if id(end) not in seen:  # a container of a heap is one object as long as it is referenced
                    seen[id(end)] = end
                    rest.append(end)
        return len(seen)


def kill_again_and_again(path, kills):
    said = 0
    for kill in range(kills):
        program = subprocess.Popen([sys.executable, __file__, "--work", path], stdout=subprocess.PIPE, text=True)
        for _ in range(random.randint(1, 200)):
            said = int(program.stdout.readline())
        program.send_signal(signal.SIGKILL)  # wherever it is
        for line in program.stdout:  # what it reported before that
            said = int(line) if line.endswith("\n") else said
        program.wait()
        program.stdout.close()
        found = check(path, said)
        print(f"kill {kill + 1}: {said} edges were reported, {found} are there")
    print(f"killed {kills} times: nothing is lost, and no change is halved")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.ty")
        with taiyen.open(path, kind="transactional") as heap:
            make(heap)
        kill_again_and_again(path, given.kills)
        print(f"{reached(path)} nodes of 200 are reached from the first")


if __name__ == "__main__":
    main()
