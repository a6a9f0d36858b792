#!/usr/bin/env python3
"""Checks that includes go one way: os <- heap <- marks <- store/image, store/log <- txn <- undo, feed, code <- api <- packages, programs;
and likewise among the parts of a layer. And that the core allocates for itself by os::internal_malloc and its like.

    scripts/check_layers.py [TREE]        prints each violation as file:line: what; exit 1 if there is one
    scripts/check_layers.py --self-test   plants each kind of violation in a temporary tree and looks for it

The rules stand in docs/design/README.md; the tables below are their only other place.
"""

import os
import re
import sys
import tempfile

# What each layer, a folder, may include of the others, each through its façade only: FOLDER/NAME.hpp.
BELOW_TXN = ("src/os", "src/heap", "src/marks", "src/store", "src/store/image", "src/store/log", "src/txn/stm")
BELOW_API = BELOW_TXN + ("src/txn", "src/undo", "src/feed", "src/code")
LOWER_LAYERS = {
    "src/os": (),
    "src/heap": ("src/os",),
    "src/marks": ("src/os", "src/heap"),
    "src/store": ("src/os",),
    "src/store/image": ("src/os", "src/heap", "src/marks", "src/store"),
    "src/store/log": ("src/os", "src/store"),
    "src/txn/stm": ("src/os",),
    "src/txn": BELOW_TXN,
    "src/undo": BELOW_TXN + ("src/txn",),
    "src/feed": BELOW_TXN + ("src/txn",),
    "src/code": BELOW_TXN + ("src/txn", "src/undo"),
    "src/api": BELOW_API,
    "packages/common": (),  # what packages share, on the public API alone
    "packages/pack/src": ("packages/common",),
    "packages/twophase/src": ("packages/common",),
    "packages/replication/ship": ("packages/common",),
    "packages/replication/standby": ("packages/common",),
    "packages/malloc/src": ("src/os", "src/heap"),  # and the public API
    "tests/simulated_disk": ("src/os",),
}

# The parts of a layer, a folder each, from the lowest up: what a part includes of another lies below it, and is that
# part's entry header, PART/PART.hpp. A layer that is not named here has no folders.
PARTS = {
    "src/os": ("base", "calls", "process", "memory", "tracking", "storage", "program"),
    "src/heap": ("tables", "pages", "spans", "threads", "blocks", "checks", "maintenance"),
    "src/store/image": ("files", "snapshots", "opening", "inspect"),
    "src/store/log": ("records", "frames", "ring", "sinks"),
    "src/txn": ("changes", "transactions", "concurrent", "recovery", "sharing"),
    "packages/pack/src": ("format", "codec", "blocks", "stream", "types", "io"),
}

# Libraries of their own, with the C++ run-time library; what of them calls the operating system.
OWN_LIBRARIES = ("packages/common", "packages/pack/src", "packages/twophase/src", "packages/replication/ship", "packages/replication/standby")
OWN_SYSTEM = ("packages/common/common.hpp", "packages/twophase/src/support.hpp", "packages/pack/src/io/", "packages/pack/src/types/program_ranges.cpp",
              "packages/replication/ship/folder.cpp")

# The simulated disk is a test instrument, no part of the library: it may use the C++ run-time library, and nothing in the
# library includes it.
SIMULATION = "tests/simulated_disk"

# What allocates, in src, for itself: by os::internal_malloc and its like, else it would lie in the heap of a thread's scope.
# Not so the libraries of their own, the simulated disk, and the family's own definitions.
OWN_MALLOC = "src/os/process/current_malloc.cpp"
ALLOCATES = re.compile(
    r"(?<![\w.>])(?:malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|strdup|strndup|asprintf|vasprintf"
    r"|getline|getdelim|open_memstream)\s*\("
)
NO_CODE = re.compile(r'"(?:[^"\\]|\\.)*"|//.*')

# Refers to the C++ run-time library weakly, to catch what a program's callbacks throw.
EXCEPTIONS = "src/os/base/caught.cpp"

# A header beside a façade, and the layer that needs it: malloc's fast path is in line, for a call would cost a third.
INLINE_CALLS = {"src/heap/blocks/magazine.hpp": "packages/malloc/src"}

# The private header for packages, and who includes it beside tests.
PLUGIN = "taiyen/plugin.h"
PLUGIN_USERS = ("src/txn", "src/api", "packages/twophase/src")

PROGRAM_FOLDERS = ("cli", "bench", "examples", "packages/python/src")
MEASURED = {"bench": "examples"}  # whose structures a program measures
TEST_FOLDERS = ("tests", "fuzz")

# C++ headers that need nothing of the C++ run-time library; all others are refused in src.
RUNTIME_FREE = set(
    "algorithm array atomic bit compare concepts initializer_list limits new numeric source_location span tuple "
    "type_traits utility version".split()
)

# The headers of ISO C, which are no system calls, and their C++ names.
ISO_C = set(
    "assert ctype errno float inttypes limits math signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib "
    "string time".split()
)
C_HEADERS = {name + ".h" for name in ISO_C} | {"c" + name for name in ISO_C}

# Libraries, by the layers that use them. The core uses one that is a header alone.
PACK, TWOPHASE, SHIP, STANDBY = OWN_LIBRARIES[1:]
THIRD_PARTY = {"xxhash.h": ("src/os", PACK, TWOPHASE, SHIP, STANDBY), "nats/nats.h": (STANDBY,), "librdkafka/rdkafka.h": (STANDBY,),
               "lz4.h": (PACK, SHIP), "lz4hc.h": (PACK,), "zstd.h": (PACK,)}

SOURCE_SUFFIXES = (".c", ".h", ".cpp", ".hpp", ".cc", ".hh", ".inc")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


PUBLIC = re.compile(r"^(include|packages/.*/include)/taiyen/")


def facade_of(layer):
    return f"{layer}/{os.path.basename(layer)}.hpp"


def layer_of(path):
    """The layer that a path lies in, else None; a folder of src that is none stands for itself."""
    if PUBLIC.match(path) or path.startswith(SIMULATION + "/tests/"):
        return None
    layers = [layer for layer in LOWER_LAYERS if path.startswith(layer + "/")]
    return max(layers, key=len, default="/".join(path.split("/")[:2]) if path.startswith("src/") else None)


def part_of(path):
    """The part of a layer that a path lies in; None for a façade, and what lies beside it."""
    inner = path[len(layer_of(path) or "") + 1:].split("/")
    return inner[0] if len(inner) > 1 else None


def resolve(tree, path, include):
    """The path within the tree of what a quoted include names, or None where there is no such file."""
    for folder in (os.path.dirname(path), "", "src", "include"):
        candidate = os.path.normpath(os.path.join(folder, include))
        if os.path.isfile(os.path.join(tree, candidate)):
            return candidate
    return None


def check_part_include(path, layer, target):
    """Within a layer: the own part and the façade freely, lower parts through their entry headers."""
    own, other = part_of(path), part_of(target)
    if own is None or other is None or own == other:
        return None
    order = PARTS[layer]
    if order.index(other) > order.index(own):
        return f"{own} may not include {other}: includes go down the parts of {layer} only"
    if target != f"{layer}/{other}/{other}.hpp":
        return f"{own} includes {target} past its entry header {other}/{other}.hpp"
    return None


def check_layer_include(path, layer, target):
    """Within a layer: lower layers through their façades."""
    if PUBLIC.match(target):
        return None
    other = layer_of(target)
    if other == SIMULATION != layer:
        return f"{target} is for tests only"
    if other == layer:
        return check_part_include(path, layer, target)
    if other not in LOWER_LAYERS:
        return f"{layer} includes {target}, which is no part of the library"
    if other not in LOWER_LAYERS[layer]:
        return f"{layer} may not include {other}: includes go down the layers only"
    if target != facade_of(other) and INLINE_CALLS.get(target) != layer:
        return f"{layer} includes {target} past the façade {facade_of(other)}"
    return None


def check_layer_system_include(path, layer, include):
    """Within a layer: no run-time library of C++, and the operating system in src/os only."""
    if include.startswith("taiyen/") or include in C_HEADERS or include in RUNTIME_FREE:
        return None
    if include in THIRD_PARTY:
        return None if layer in THIRD_PARTY[include] else f"<{include}> is for {', '.join(THIRD_PARTY[include])} only"
    if "." not in include and (layer == SIMULATION or path == EXCEPTIONS or layer in OWN_LIBRARIES):
        return None
    if "." not in include:
        return f"<{include}> may need the C++ run-time library, which the core does without"
    return None if layer in ("src/os", SIMULATION) or path.startswith(OWN_SYSTEM) else f"<{include}>: only src/os includes system headers"


def program_of(path):
    return next((folder for folder in PROGRAM_FOLDERS if path.startswith(folder + "/")), None)


def check_program_include(path, target):
    folder = program_of(path)
    if PUBLIC.match(target) or program_of(target) in (folder, MEASURED.get(folder, folder)):
        return None
    return f"{folder} includes {target}; programs use the public API only"


def check_test_include(path, target):
    """tests/<layer> sees its layer and what is below; other tests see everything."""
    tested = [layer for layer in LOWER_LAYERS if path.startswith("tests" + layer[len("src"):] + "/")]
    layer, other = max(tested, key=len, default=None), layer_of(target)
    if layer is None or other in (None, layer, SIMULATION) or other in LOWER_LAYERS[layer]:
        return None
    return f"tests of {layer} include {target}: a layer's tests use it and what is below it"


def check_public_include(path, include, quoted, target):
    if target and not PUBLIC.match(target):
        return f"public header includes {target}, which is not public"
    if path.endswith(".hpp"):
        return None
    if quoted or include.startswith("taiyen/") or include in ("stdbool.h", "stddef.h", "stdint.h"):
        return None
    return f"public C header includes <{include}>; only stdbool.h, stddef.h and stdint.h are allowed"


def check_include(tree, path, include, quoted):
    """What is wrong with one include, or None."""
    target = resolve(tree, path, include) if quoted or "/" in include else None
    layer = layer_of(path)
    if include.endswith(PLUGIN) and layer not in PLUGIN_USERS and not re.search(r"(^|/)tests/", path):
        return f"<{include}> is for {', '.join(PLUGIN_USERS)} only"
    if PUBLIC.match(path):
        return check_public_include(path, include, quoted, target)
    if layer is not None:
        if layer not in LOWER_LAYERS:
            return f"{layer} is not a layer that {os.path.basename(__file__)} knows"
        if part_of(path) not in (None,) + PARTS.get(layer, ()):
            return f"{layer}/{part_of(path)} is not a part that {os.path.basename(__file__)} knows"
        if quoted and target is None:
            return f'"{include}" is not in the tree; system headers are written <{include}>'
        return check_layer_include(path, layer, target) if target else check_layer_system_include(path, layer, include)
    if target is None:
        return None
    return check_program_include(path, target) if program_of(path) else check_test_include(path, target)


def check_allocation(path, line):
    """What is wrong with a line of the core that allocates, or None."""
    layer = layer_of(path)
    if layer is None or not (layer.startswith("src/") or layer == TWOPHASE) or path == OWN_MALLOC:
        return None
    match = ALLOCATES.search(NO_CODE.sub("", line))
    return f"{match.group().rstrip('( ')}: the library allocates for itself by os::internal_malloc and its like, or ty_plugin_malloc" if match else None


def source_files(tree):
    for folder in ("src", "include", "packages", "cli", "bench", "examples") + TEST_FOLDERS:
        for directory, _, names in os.walk(os.path.join(tree, folder)):
            for name in sorted(names):
                if name.endswith(SOURCE_SUFFIXES):
                    yield os.path.relpath(os.path.join(directory, name), tree)


def check_tree(tree):
    """All violations in a tree, as texts, and the number of files read."""
    violations = []
    files = 0
    for path in source_files(tree):
        files += 1
        with open(os.path.join(tree, path), encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                match = INCLUDE.match(line)
                if match is None:
                    wrong = check_allocation(path, line)
                else:
                    wrong = check_include(tree, path, match.group(1) or match.group(2), match.group(1) is not None)
                if wrong:
                    violations.append(f"{path}:{number}: {wrong}")
    return violations, files


# One planted violation a rule: file, line. And, below, what must be let through.
PLANTED = (
    ("src/os/a.cpp", '#include "../heap/heap.hpp"'),
    ("src/heap/b.cpp", '#include "src/store/image/image.hpp"'),
    ("src/store/image/c.cpp", '#include "src/heap/tables/heap_layout.hpp"'),
    ("src/store/image/m.cpp", '#include "src/heap/blocks/magazine.hpp"'),
    ("src/store/image/d.cpp", '#include "tests/simulated_disk/storage_sim.hpp"'),
    ("src/os/s.cpp", '#include "tests/simulated_disk/storage_sim.hpp"'),
    ("tests/simulated_disk/t.cpp", '#include "src/os/memory/memory.hpp"'),
    ("src/heap/tables/u.cpp", '#include "../pages/pages.hpp"'),
    ("src/heap/spans/v.cpp", '#include "../pages/page_extents.hpp"'),
    ("src/heap/new_part/w.cpp", "#include <cstdint>"),
    ("src/api/new_part/x.cpp", "#include <cstdint>"),
    ("src/store/image/e.cpp", '#include "cli/own.hpp"'),
    ("src/store/image/f.cpp", '#include "missing.hpp"'),
    ("src/heap/g.cpp", "#include <vector>"),
    ("src/os/h.cpp", "#include <string>"),
    ("src/heap/i.cpp", "#include <sys/mman.h>"),
    ("src/api/j.cpp", "  # include <unistd.h>"),
    ("src/heap/k.cpp", "#include <xxhash.h>"),
    ("src/heap/l.cpp", "#include <src/store/image/image.hpp>"),
    ("src/new_layer/m.cpp", "#include <cstdint>"),
    ("packages/pack/src/y.cpp", '#include "src/heap/heap.hpp"'),
    ("packages/pack/src/z.cpp", "#include <unistd.h>"),
    ("src/api/a.cpp", "#include <lz4.h>"),
    ("cli/n.cpp", '#include "../src/heap/heap.hpp"'),
    ("bench/o.cpp", '#include "src/os/os.hpp"'),
    ("examples/p.cpp", '#include "../cli/own.hpp"'),
    ("tests/heap/q.cpp", '#include "src/store/image/image.hpp"'),
    ("include/taiyen/r.h", "#include <sys/types.h>"),
    ("packages/values/include/taiyen/s.hpp", '#include "src/heap/heap.hpp"'),
    ("packages/python/src/t.cpp", '#include "src/heap/heap.hpp"'),
    ("packages/pack/src/plugin.cpp", "#include <taiyen/plugin.h>"),
    ("cli/plugin.cpp", "#include <taiyen/plugin.h>"),
    ("src/store/image/own.cpp", "    void *bytes = malloc(10);"),
    ("packages/twophase/src/own.cpp", "    void *bytes = malloc(10);"),
    ("src/os/process/own.cpp", "    char *name = ::strdup(path);"),
    ("src/heap/own.cpp", "    return std::realloc(block, 2 * size);"),
)
ALLOWED = (
    ("src/os/os.hpp", "#include <sys/mman.h>"),
    ("tests/simulated_disk/storage_sim.hpp", "#include <atomic>"),
    ("tests/simulated_disk/storage_sim.cpp", "#include <vector>"),
    ("tests/simulated_disk/cut.cpp", '#include "src/os/os.hpp"'),
    ("src/heap/heap.hpp", '#include "../os/os.hpp"'),
    ("src/heap/tables/heap_layout.hpp", "#include <taiyen/heap.h>"),
    ("src/heap/pages/pages.hpp", '#include "page_extents.hpp"'),
    ("src/heap/pages/page_extents.hpp", '#include "../heap.hpp"'),
    ("src/heap/spans/ok.cpp", '#include "../pages/pages.hpp"'),
    ("src/heap/blocks/magazine.hpp", "#include <atomic>"),
    ("src/os/memory/memory.hpp", "#include <cstddef>"),
    ("packages/malloc/src/m.cpp", '#include "src/heap/blocks/magazine.hpp"'),
    ("src/store/image/image.hpp", '#include "src/heap/heap.hpp"'),
    ("src/os/base/checksum.cpp", "#include <xxhash.h>"),
    ("src/api/api.cpp", '#include "src/store/image/image.hpp"'),
    ("src/api/text.cpp", "#include <cstdio>"),
    ("packages/pack/src/ok.cpp", "#include <vector>"),
    ("packages/pack/src/io/ok.cpp", "#include <unistd.h>"),
    ("packages/pack/src/codec/ok.cpp", "#include <zstd.h>"),
    ("cli/own.hpp", "#include <string>"),
    ("cli/main.cpp", '#include "common.hpp"'),
    ("bench/probe.cpp", "#include <sys/ioctl.h>"),
    ("examples/own.hpp", "#include <string>"),
    ("bench/measures.cpp", '#include "../examples/own.hpp"'),
    ("tests/heap/tables/ok.cpp", '#include "src/heap/tables/heap_layout.hpp"'),
    ("tests/crash/ok.cpp", '#include "tests/simulated_disk/storage_sim.hpp"'),
    ("tests/store/log/ok.cpp", '#include "tests/simulated_disk/storage_sim.hpp"'),
    ("include/taiyen/heap.h", "#include <stdint.h>"),
    ("include/taiyen/taiyen.hpp", "#include <memory_resource>"),
    ("packages/python/src/ok.cpp", "#include <Python.h>"),
    ("packages/twophase/src/ok.cpp", "#include <taiyen/plugin.h>"),
    ("packages/twophase/tests/ok.cpp", "#include <taiyen/plugin.h>"),
    ("src/store/image/asks.cpp", "    void *bytes = os::internal_malloc(10); // not malloc(10)"),
    ("src/store/image/says.cpp", '    return "malloc(10)";'),
    ("src/os/process/current_malloc.cpp", "    return malloc(bytes);"),
    ("packages/pack/src/bits.cpp", "    void *bytes = calloc(10, 8);"),
    ("tests/heap/makes.cpp", "    void *bytes = malloc(10);"),
)


def self_test():
    with tempfile.TemporaryDirectory() as tree:
        for path, line in ALLOWED + PLANTED:
            full = os.path.join(tree, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as source:
                source.write(f"// {path}\n{line}\n")
        violations, _ = check_tree(tree)
    found = {violation.split(":")[0] for violation in violations}
    planted = {path for path, _ in PLANTED}
    for path in sorted(planted - found):
        print(f"self-test: planted violation in {path} was not found")
    for path in sorted(found - planted):
        print(f"self-test: {path} was refused but is allowed")
    if found != planted:
        return 1
    print(f"{len(PLANTED)} planted violations found, {len(ALLOWED)} allowed lines let through")
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    tree = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    violations, files = check_tree(tree)
    for violation in violations:
        print(violation)
    print(f"{files} files: {len(violations)} lines against the layers")
    return 1 if violations or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
