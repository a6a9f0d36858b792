#!/usr/bin/env python3
"""Checks that the reference has each public function, of C and of C++, and that none is without a text.

    scripts/check_reference.py XML_FOLDER     what Doxygen made (docs/Doxyfile)

Functions are functions, members of classes, types of callbacks, and members of structs that are called.
"""

import glob
import os
import re
import sys
import xml.etree.ElementTree

# A function of the C API: TY_API, then a type, then ty_name( somewhere before the next semicolon.
DECLARED = re.compile(r"^TY_API [^;(]*?\b(ty_\w+)\(", re.MULTILINE)


def is_function(member):
    kind, arguments = member.get("kind"), member.findtext("argsstring") or ""
    if kind == "function":
        return member.get("prot") == "public"
    return kind in ("typedef", "variable") and "(" in arguments


def text_of(member):
    return " ".join("".join(member.find(part).itertext()) for part in ("briefdescription", "detaileddescription")).strip()


def read_reference(folder):
    """(place, name, text) of each function."""
    functions = {}
    for path in glob.glob(os.path.join(folder, "*.xml")):
        for member in xml.etree.ElementTree.parse(path).iter("memberdef"):
            place = member.find("location")
            if is_function(member) and place.get("file").endswith((".h", ".hpp")):
                functions[member.get("id")] = (f"{place.get('file')}:{place.get('line')}",
                                               member.findtext("qualifiedname") or member.findtext("name"), text_of(member))
    return list(functions.values())


def main(reference):
    functions = read_reference(reference)
    problems = [f"{place}: {name} has no text" for place, name, text in functions if not text]
    names = {name for _, name, _ in functions}
    for path in sorted(glob.glob("include/taiyen/*.h") + glob.glob("packages/**/include/taiyen/*.h", recursive=True)):
        with open(path, encoding="utf-8") as header:
            problems += [f"{path}: {name} is not in the reference" for name in DECLARED.findall(header.read())
                         if name not in names]
    for part in ("heap", "heap_view", "transaction", "allocator", "undo_view", "undo_transaction", "atomic_txn", "ref",
                 "var", "hash_map", "ordered_map", "queue", "counter"):
        if not any(name.startswith(f"taiyen::v0::{part}::") for name in names):
            problems.append(f"taiyen::{part} is not in the reference")
    for problem in sorted(problems):
        print(problem)
    print(f"{len(functions)} public functions in the reference: {len(problems)} problems")
    return 1 if problems or not functions else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
