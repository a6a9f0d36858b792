#!/usr/bin/env python3
"""Goal: `taiyen types` shows where a program's types hold pointers, says what it does not know, and damaged files do no
harm. Method: compile small programs and compare the text; then truncate one of them and flip its bits.

    tests/cli/test_types.py TAIYEN ATLAS_DEMO [AUDIT] [unittest arguments]

AUDIT is the program of types_audit.cpp.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TAIYEN = ""
ATLAS_DEMO = ""
AUDIT = ""
COMPILERS = [pair for pair in (("gcc", "g++"), ("clang", "clang++")) if shutil.which(pair[0]) and shutil.which(pair[1])]


def run(*arguments):
    return subprocess.run([TAIYEN, "types", *arguments], capture_output=True, text=True, check=False, timeout=120)


class ShapesTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="taiyen-type descriptors-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def compile(self, sources, *flags, compiler="gcc", output="program"):
        """sources: texts by file name. Compiled in one command, in the test's folder."""
        for name, text in sources.items():
            self.write(name, text)
        names = [name for name in sources if not name.endswith(".h")]
        subprocess.run([compiler, "-g", *flags, "-w", "-o", output, *names], cwd=self.folder, check=True, timeout=120)
        return self.path(output)

    def text_of(self, program, *arguments, code=0):
        result = run(program, *arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stderr == "", code == 0, result.stderr)
        self.assertTrue(result.stdout.startswith("taiyen types 1\n# Written by taiyen types, of "), result.stdout)
        return result.stdout

    def descriptors_of(self, text):
        """Each type descriptor's lines, by name, without the indentation; under "roots" the roots."""
        descriptors, name = {"roots": []}, None
        for line in text.splitlines()[2:]:
            if found := re.match(r'type ("(?:[^"\\]|\\.)*") (\d+)( # .*)?$', line):
                name = found[1][1:-1]
                self.assertNotIn(name, descriptors)
                descriptors[name] = [int(found[2])]
            elif line.startswith("root "):
                descriptors["roots"].append(line[5:])
            elif line.startswith("  "):
                descriptors[name].append(line[2:])
            else:
                self.assertTrue(line == "" or line.startswith("# Not complete"), line)
        self.assertEqual(list(descriptors)[1:], sorted(list(descriptors)[1:], key=lambda one: one.encode()))
        return descriptors

    def refuses(self, program, *arguments, says):
        result = run(program, *arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("taiyen: "), result.stderr)
        for word in says:
            self.assertIn(word, result.stderr)


NODE = """
#include <stddef.h>
typedef struct { char *text; int length; } label;
struct opaque;
enum kind { one, two };
struct node {
    struct node *next;
    label name;
    label *names;
    const char *const *words;
    int (*call)(int), (*calls[3])(void);
    struct { struct node *left, *right; int depth; } pair;
    struct { int x; struct node *unnamed; };
    union { int i; double d; } number;
    int bits : 3;
    unsigned more : 5;
    struct node *grid[2][3];
    label table[4];
    enum kind kind, *kinds;
    label (*block)[8];
    struct { char *s; } many[5];
    double (*vectors)[3];
    unsigned short used;
    volatile struct node *rest[];
} n;
int main(void) { return 0; }
"""

NODE_DESCRIPTORS = {
    "roots": ['"all" "node"'],
    "(struct at node.c:21)": [8, 'field 0 "s" pointer -'],
    "char *": [8, 'field 0 "address" pointer -'],
    "label": [16, 'field 0 "text" pointer -'],
    "node": [
        344,
        'field 0 "next" pointer "node"',
        'field 8 "name" nested "label"',
        'field 24 "names" pointer "label"',
        'field 32 "words" pointer "char *"',
        "# call: an address of code",
        "# calls: addresses of code",
        'field 72 "pair.left" pointer "node"',
        'field 80 "pair.right" pointer "node"',
        'field 104 "unnamed" pointer "node"',
        'field 128 "grid" pointer "node" here 6',
        'field 176 "table" nested "label" here 4',
        'field 248 "kinds" pointer -',
        'field 256 "block" pointer "label" there 8',
        'field 264 "many" nested "(struct at node.c:21)" here 5',
        'field 304 "vectors" pointer - there 3',
        'field 320 "rest" pointer "node" here block',
    ],
}
NODE_DESCRIPTORS["node"][0] = 320


class C(ShapesTest):
    FLAGS = (
        ["-gdwarf-4"],
        ["-gdwarf-5"],
        ["-gdwarf-4", "-fdebug-types-section"],
        ["-gdwarf-5", "-fdebug-types-section"],
        ["-gdwarf-5", "-O2"],
        ["-gdwarf-5", "-gz"],
        ["-gdwarf-4", "-gsplit-dwarf"],
        ["-gdwarf-5", "-gsplit-dwarf"],
        ["-shared", "-fPIC"],
        ["-c"],
    )

    def test_members_of_all_kinds(self):
        for compiler, _ in COMPILERS:
            for flags in self.FLAGS:
                with self.subTest(compiler=compiler, flags=flags):
                    program = self.compile({"node.c": NODE}, *flags, compiler=compiler)
                    text = self.text_of(program, "--root", "all=node")
                    self.assertEqual(self.descriptors_of(text), NODE_DESCRIPTORS)
                    self.assertIn('\ntype "node" 320 # node.c:6\n', text)

    def test_roots(self):
        program = self.compile({"node.c": NODE})
        arguments = [f"--root={one}" for one in ("z=label[]", 'a "q"=struct node', "b=label*[7]", "c=-", "d=-[]", "e=int")]
        roots = self.descriptors_of(self.text_of(program, *arguments))["roots"]
        self.assertEqual(roots, ['"a \\"q\\"" "node"', '"b" "label *" there 7', '"c" -', '"d" - there block', '"e" -',
                                 '"z" "label" there block'])
        self.assertEqual(self.text_of(program, *arguments), self.text_of(program, *reversed(arguments)))
        self.refuses(program, says=("--root",))
        self.refuses(program, "--root", "all=nodes", says=("no type 'nodes'", "the nearest is 'node'"))
        self.refuses(program, "--root", "all", says=("NAME=TYPE",))
        self.refuses(program, "--root", "all=node[x]", says=("'all=node[x]'",))
        self.refuses(program, "--root", "a=node", "--root", "a=label", says=("each root once",))

    def test_what_is_not_known(self):
        program = self.compile({"a.c": """
            struct opaque;
            union either { struct a *a; long b; };
            struct a { void *any; struct opaque *opaque; union either named; union { struct a *x; char *y; }; } a;
            struct plain { union { long a; double b; } u; int *p; } p;
            struct __attribute__((packed)) packed { char c; struct a *a; } k;
            struct none { struct a *rest[0]; }; struct around { long a; struct none none; struct none many[2]; } r;
            struct __attribute__((packed)) odd { int c; struct a *a; int d; } o;
            int main(void) { return 0; }"""})
        text = self.text_of(program, "--root", "a=a", "--root", "p=plain", "--root", "k=packed", "--root", "o=odd",
                            "--root=r=around", code=1)
        descriptors = self.descriptors_of(text)
        hook = "only the program knows. The program binds a hook (ty_types_bind)"
        self.assertEqual(descriptors["a"], [
            32,
            "# any is a void *: nothing is known of what it leads to",
            'field 0 "any" pointer -',
            "# ! opaque leads to opaque, which is only declared in the program: say bytes or to TYPE in a hint",
            'field 8 "opaque" pointer -',
            'field 16 "named" nested "either"',
            "# ! a union has addresses: which of its members counts, " + hook,
            "trace"])
        self.assertEqual(descriptors["either"][1:], [
            "# ! it is a union with addresses: which of its members counts, " + hook, "trace"])
        self.assertEqual(descriptors["plain"], [16, 'field 8 "p" pointer -'])
        self.assertEqual(descriptors["odd"][-1], "trace")
        self.assertIn("no multiple of 8", descriptors["packed"][-1])
        complete = self.text_of(program, "--root", "a=a", "--hint", "a: trace", "--hint", "either: trace", "--hint",
                                "a.opaque: bytes", "--hint", "a.any: to a")
        self.assertNotIn("# !", complete)
        self.assertIn('field 0 "any" pointer "a"\n', complete)

    def test_hints(self):
        program = self.compile({"a.c": """
            struct item { long a; };
            struct head { unsigned long length; };
            struct a {
                struct item *first, *second, *third, *end, *tagged, *loose; void *any, *bytes; char *place;
                struct item *matrix; int rows; struct head head; unsigned short used; struct item *slots[8];
                struct { struct item *items; unsigned count; } list;
            } a;
            int main(void) { return 0; }"""})
        hints = self.write("hints", """
            # what the program knows
            a.first: count rows            # so many
            a.second: block
            a.third: end end
            a.end: place third
            struct a.tagged: tag 0x7, count 12
            a.loose: reference
            a.any: to item*, block
            a.bytes: bytes
            a.place: place first
            a.matrix: count head.length times 4
            a.slots: used used
            """)
        arguments = ["--root", "a=a", "--hints", hints, "--hint", "a.list.items: count list.count"]
        self.assertEqual(self.descriptors_of(self.text_of(program, *arguments))["a"][1:], [
            'field 0 "first" pointer "item" there field 80 4',
            'field 8 "second" pointer "item" there block',
            'field 16 "third" pointer "item" there end 24',
            'field 24 "end" place 16',
            'field 32 "tagged" pointer "item" there 12 tag 0x7',
            'field 40 "loose" reference',
            'field 48 "any" pointer "item *" there block',
            'field 56 "bytes" pointer -',
            'field 64 "place" place 0',
            'field 72 "matrix" pointer "item" there field 88 8 times 4',
            'field 104 "slots" pointer "item" here field 96 2',
            'field 168 "list.items" pointer "item" there field 176 4'])
        wrong = {
            "a.frist: block": "the nearest is 'a.first'",
            "a.first: blok": "'blok' says nothing of a field",
            "a.first": "TYPE.FIELD: ",
            "a.first: count row": "the nearest is 'rows'",
            "a.first: count second": "no integer",
            "a.first: to itme": "the nearest is 'item'",
            "a.first: tag 0x100": "bits of the address",
            "a.place: place rows": "is no pointer",
            "a.first: block extra": "'block extra'",
        }
        for hint, says in wrong.items():
            with self.subTest(hint):
                self.refuses(program, "--root", "a=a", "--hint", hint, says=(says,))
        self.refuses(program, *arguments, "--hint", "a.first: block", says=("two hints for 'a.first'",))
        self.refuses(program, "--root", "a=a", "--hints", self.path("none"), says=("none", "No such file"))
        self.write("hints", "a.first: block\n\na.second: lot\n")
        self.refuses(program, "--root", "a=a", "--hints", hints, says=("hints:3: 'lot'",))

    def test_types_of_bytes_and_of_arrays(self):
        program = self.compile({"a.c": """
            #include <pthread.h>
            struct opaque; typedef struct opaque hidden; typedef struct item { struct item *next; } items[4][2];
            struct a { pthread_mutex_t lock; struct opaque *opaque; struct item *item; void *any; } a;
            items i; hidden *h; pthread_mutex_t m;
            int main(void) { return 0; }"""})
        self.text_of(program, "--root", "a=a", code=1)
        hints = [f"--hint={one}" for one in ("pthread_mutex_t: bytes", "opaque: bytes", "a.any: to items")]
        descriptors = self.descriptors_of(self.text_of(program, "--root", "a=a", "--root", "i=items", "--root", "m=pthread_mutex_t", *hints))
        self.assertEqual(descriptors["a"], [
            64, 'field 40 "opaque" pointer -', 'field 48 "item" pointer "item"', 'field 56 "any" pointer "item" there 8'])
        self.assertEqual(descriptors["roots"], ['"a" "a"', '"i" "item" there 8', '"m" -'])
        self.refuses(program, "--root", "h=hidden", says=("only declared",))
        self.refuses(program, "--root", "a=a", "--hint", "a.any: to hidden", says=("only declared",))

    def test_long_names(self):
        long = "x" * 5000
        program = self.compile({"a.c": f"struct {long} {{ struct {long} *p; struct {long}y *q; }} a; "
                                       f"struct {long}y {{ int *p; }} b; int main(void) {{ return 0; }}"})
        descriptors = self.descriptors_of(self.text_of(program, "--root", f"a={long}"))
        self.assertEqual(len(descriptors), 3)
        self.assertLess(max(map(len, descriptors)), 4096)

    def test_several_units(self):
        sources = {
            "a.c": "struct far; struct near { struct far *far; } a; int main(void) { return 0; }",
            "b.c": "struct far { struct near *near; struct mine *mine; } b; struct mine { int *x; } m;",
            "c.c": "\nstruct mine { long pad; int *y; }; struct user { struct mine *mine; } u;",
        }
        program = self.compile(sources)
        descriptors = self.descriptors_of(self.text_of(program, "--root", "a=near", "--root", "u=user"))
        self.assertEqual(descriptors["near"], [8, 'field 0 "far" pointer "far"'])
        self.assertEqual(descriptors["far"][2], 'field 8 "mine" pointer "mine (b.c:1)"')
        self.assertEqual(descriptors["user"], [8, 'field 0 "mine" pointer "mine (c.c:2)"'])
        self.refuses(program, "--root", "m=mine", says=("several types 'mine'", "'mine (b.c:1)', 'mine (c.c:2)'"))
        roots = self.descriptors_of(self.text_of(program, "--root", "m=mine (c.c:2)"))["roots"]
        self.assertEqual(roots, ['"m" "mine (c.c:2)"'])

    def test_missing_parts(self):
        program = self.compile({"node.c": NODE}, "-gsplit-dwarf")
        for name in os.listdir(self.folder):
            if name.endswith(".dwo"):
                os.remove(self.path(name))
        self.refuses(program, "--root", "a=node", says=(".dwo", "-gsplit-dwarf"))
        self.refuses(self.compile({"node.c": NODE}, "-g0"), "--root", "a=node", says=("no debug information", "-g"))
        self.refuses(self.path("none"), "--root", "a=b", says=("none: it cannot be read: No such file",))
        self.refuses(self.folder, "--root", "a=b", says=("no program or library",))
        self.refuses(self.write("text", "text"), "--root", "a=b", says=("no program or library",))
        self.refuses(self.write("empty", ""), "--root", "a=b", says=("no program or library",))

    def test_separate_debug_file(self):
        if not shutil.which("objcopy"):
            self.skipTest("there is no objcopy")
        program = self.compile({"node.c": NODE})
        for arguments in (["--only-keep-debug", "program", "program.debug"], ["--strip-debug", "program"],
                          ["--add-gnu-debuglink=program.debug", "program"]):
            subprocess.run(["objcopy", *arguments], cwd=self.folder, check=True)
        self.assertEqual(self.descriptors_of(self.text_of(program, "--root", "all=node")), NODE_DESCRIPTORS)
        os.remove(self.path("program.debug"))
        self.refuses(program, "--root", "a=node", says=("no debug information",))


    def test_shared_debug_file(self):
        if not shutil.which("dwz"):
            self.skipTest("there is no dwz")
        self.compile({"node.c": NODE}, "-shared", "-fPIC", output="library")
        program = self.compile({"node.c": NODE})
        subprocess.run(["dwz", "-m", "common", "program", "library"], cwd=self.folder, check=True)
        self.assertEqual(self.descriptors_of(self.text_of(program, "--root", "all=node")), NODE_DESCRIPTORS)
        os.remove(self.path("common"))
        self.refuses(program, "--root", "a=node", says=("common", ".gnu_debugaltlink"))


CLASSES = """
namespace { struct hidden { hidden *next; }; }
struct base { virtual ~base(); base *parent; };
base::~base() {}
struct circle : base { char *name; };
struct far : virtual base { int *p; };
struct link { link *next; };
struct two : link, base { void (base::*method)(); int link::*data; two *other; base &up; static two *all; two(base &b) : up(b) {} };
two *two::all;
two *make_two(base &b) { return new two(b); }
struct outer { struct inner; inner *in; hidden *h; };
struct outer::inner { outer *back; };
template <class T> struct tree { T value; tree *left, *right; T *values; };
namespace demo { enum class colour { red }; struct point { double x; colour c; }; }
struct world { circle c; two *t; far *f; outer o; tree<demo::point> points; tree<outer *> outers; const volatile outer *const cv; };
world *make(two *t, far *f) { return new world{{}, t, f}; }
far *make_far() { return new far; }
int main() { return make(0, make_far()) == 0; }
"""


class Cpp(ShapesTest):
    def test_classes(self):
        for _, compiler in COMPILERS:
            for version in ("-gdwarf-4", "-gdwarf-5"):
                with self.subTest(compiler=compiler, version=version):
                    flags = ["-fstandalone-debug"] if "clang" in compiler else []
                    program = self.compile({"a.cpp": CLASSES}, version, *flags, compiler=compiler)
                    descriptors = self.descriptors_of(self.text_of(program, "--root", "w=world", code=1))
                    self.check_classes({name: [str(line).replace("_vptr$", "_vptr.") for line in lines]
                                        for name, lines in descriptors.items()})

    def check_classes(self, descriptors):
        derived = "may lead to a class that has base as its base (circle, far, two): say to TYPE in a hint, or bind a hook"
        self.assertEqual(descriptors["base"], ["16", "# _vptr.base: a virtual table: code", "# ! parent " + derived,
                                          'field 8 "parent" pointer "base"'])
        self.assertEqual(descriptors["circle"], ["24", 'field 0 "base" nested "base"', 'field 16 "name" pointer -'])
        self.assertEqual(descriptors["two"], [
            "64", 'field 0 "base" nested "base"', 'field 16 "link" nested "link"', "# method: an address of code",
            'field 48 "other" pointer "two"', "# ! up " + derived, 'field 56 "up" pointer "base"'])
        self.assertEqual(descriptors["outer"], ["16", 'field 0 "in" pointer "outer::inner"',
                                           'field 8 "h" pointer "(anonymous namespace)::hidden"'])
        self.assertEqual(descriptors["outer::inner"], ["8", 'field 0 "back" pointer "outer"'])
        self.assertEqual(descriptors["far"][-1], "trace")
        self.assertEqual(descriptors["tree<demo::point>"], [
            "40", 'field 16 "left" pointer "tree<demo::point>"', 'field 24 "right" pointer "tree<demo::point>"',
            'field 32 "values" pointer "demo::point"'])
        self.assertEqual(descriptors["demo::point"], ["16"])
        self.assertIn('field 24 "values" pointer "outer *"', [*descriptors.get("tree<outer*>", []),
                                                            *descriptors.get("tree<outer *>", [])])

    def test_names_without_regard_to_blanks(self):
        program = self.compile({"a.cpp": CLASSES}, compiler="g++")
        for name in ("tree<outer*>", "tree<outer *>", "struct tree<outer*>"):
            self.assertIn('root "r" "tree<outer*>"', self.text_of(program, "--root", "r=" + name))
        pointers = run(program, "--root", "r=world", "--hint", "base.parent: to circle", "--hint", "two.up: to base",
                       "--hint", "far: trace", "--hint", "base: moved")
        self.assertEqual(pointers.returncode, 0, pointers.stderr)

    def test_containers(self):
        program = self.compile({"a.cpp": """
            #include <forward_list>
            #include <functional>
            #include <list>
            #include <map>
            #include <memory>
            #include <optional>
            #include <string>
            #include <unordered_map>
            #include <vector>
            struct item { item *next; };
            struct all {
                std::string text; std::vector<item> items; std::vector<int> numbers; std::vector<bool> bits;
                std::unique_ptr<item> own; std::optional<item> may; std::optional<item *> address;
                std::map<int, item *> tree; std::unordered_map<int, item> table; std::forward_list<item> chain;
                std::list<int> plain;
            } a;
            struct rest {
                std::list<item *> list; std::map<item *, int> by_address; std::function<void()> code;
                std::shared_ptr<item> shared; std::weak_ptr<item> weak;
            } r;
            int main() {
                a.tree[1] = nullptr; a.table[1] = {}; r.by_address[nullptr] = 1; r.shared = std::make_shared<item>();
            }"""}, "-std=c++20", compiler="g++")
        descriptors = self.descriptors_of(self.text_of(program, "--root", "a=all"))
        self.assertNotIn("# !", str(descriptors))
        found = {name: lines for name, lines in descriptors.items() if name.startswith("std::")}

        def of(start):
            (name,) = [name for name in found if name.startswith(start)]
            return [line.replace(name, start) if isinstance(line, str) else line for line in found[name]]

        self.assertEqual(of("std::__cxx11::basic_string<"), [32, 'field 0 "_M_dataplus._M_p" pointer -'])
        places = ['field 8 "_M_impl._M_finish" place 0', 'field 16 "_M_impl._M_end_of_storage" place 0']
        self.assertEqual(of("std::vector<item"), [24, 'field 0 "_M_impl._M_start" pointer "item" there end 8', *places])
        self.assertEqual(of("std::vector<int"), [24, 'field 0 "_M_impl._M_start" pointer - there end 8', *places])
        self.assertEqual(of("std::vector<bool"), [
            40, 'field 0 "_M_impl._M_start" pointer -', 'field 16 "_M_impl._M_finish" place 0',
            'field 32 "_M_impl._M_end_of_storage" place 0'])
        self.assertEqual(of("std::unique_ptr<"), [8, 'field 0 "_M_t._M_t._M_head_impl" pointer "item"'])
        self.assertEqual(of("std::optional<item>"), [16, 'field 0 "_M_payload.value" nested "item" here field 8 1'])
        self.assertEqual(of("std::optional<item*>"), [16, 'field 0 "_M_payload.value" nested "item *" here field 8 1'])
        node = "std::_Rb_tree_node<std::pair<int const, item*> >"
        self.assertEqual(of("std::map<"), [
            48, f'field 16 "_M_t._M_impl._M_header._M_parent" pointer "{node}"',
            'field 24 "_M_t._M_impl._M_header._M_left" reference', 'field 32 "_M_t._M_impl._M_header._M_right" reference'])
        self.assertEqual(found[node], [
            48, 'field 8 "_M_parent" reference', f'field 16 "_M_left" pointer "{node}"',
            f'field 24 "_M_right" pointer "{node}"', 'field 32 "value" nested "std::pair<int const, item*>"'])
        node = "std::__detail::_Hash_node<std::pair<int const, item>, false>"
        self.assertEqual(of("std::unordered_map<"), [
            56, 'field 0 "_M_h._M_buckets" pointer "std::_Hashtable bucket" there field 8 8',
            f'field 16 "_M_h._M_before_begin._M_next" pointer "{node}"', 'field 48 "_M_h._M_single_bucket" reference'])
        self.assertEqual(found[node], [24, f'field 0 "_M_next" pointer "{node}"',
                                       'field 8 "value" nested "std::pair<int const, item>"'])
        self.assertEqual(of("std::_Fwd_list_node<"), [16, 'field 0 "_M_next" pointer "std::_Fwd_list_node<"',
                                                      'field 8 "value" nested "item"'])
        self.assertIn("std::__detail::_List_node_base", found)

        found = self.descriptors_of(self.text_of(program, "--root", "r=rest", code=1))
        self.assertEqual(of("std::__cxx11::list<")[-1], "trace")
        self.assertEqual(of("std::map<item*")[-1], "moved")
        self.assertEqual(of("std::function<")[-1], "trace")
        self.assertEqual(of("std::shared_ptr<")[1], 'field 0 "_M_ptr" pointer "item"')
        self.assertEqual(of("std::weak_ptr<")[1], 'field 0 "_M_ptr" reference')

    def test_own_maps(self):
        tree = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        program = self.compile({"a.cpp": """
            #include <taiyen/containers.hpp>
            struct item { item *next; };
            template class taiyen::hash_map<long, item *>;
            template class taiyen::hash_map<item *, long>;
            template class taiyen::ordered_map<long, long>;
            struct numbers { taiyen::hash_map<long, item *> *table; } n;
            struct addresses { taiyen::hash_map<item *, long> *table; } a;
            struct ordered { taiyen::ordered_map<long, long> *tree; } o;
            int main() {}"""}, "-std=c++20", f"-I{tree}/include", f"-I{tree}/packages/values/include", "-c", compiler="g++")
        self.text_of(program, "--root", "n=numbers")
        self.assertIn("moved", str(self.descriptors_of(self.text_of(program, "--root", "a=addresses", code=1))))
        self.assertIn("trace", str(self.descriptors_of(self.text_of(program, "--root", "o=ordered", code=1))))

    def test_containers_by_audit(self):
        if not AUDIT:
            self.skipTest("no program that takes a pointer audit was named")
        text = self.write("text", self.text_of(AUDIT, "--root", "all=everything"))
        result = subprocess.run([AUDIT, text], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("open: ", result.stdout)

    def test_atlas(self):
        text = self.text_of(ATLAS_DEMO, "--root", "atlas=demo::atlas", "--hint", "demo::atlas.buckets: count bucket_count",
                            "--hint", "demo::country.cities: count count", "--hint", "demo::kd_node.cities: count count")
        descriptors = self.descriptors_of(text)
        self.assertEqual(descriptors, {
            "roots": ['"atlas" "demo::atlas"'],
            "demo::atlas": [
                5464, 'field 0 "buckets" pointer "demo::city *" there field 8 8', 'field 24 "tree" pointer "demo::kd_node"',
                'field 32 "countries" pointer "demo::country" here 676'],
            "demo::city": [
                104, 'field 0 "name" pointer -', 'field 8 "region" pointer -', 'field 16 "district" pointer -',
                'field 24 "note" pointer -', 'field 32 "home" pointer "demo::country"',
                'field 40 "next_in_bucket" pointer "demo::city"'],
            "demo::city *": [8, 'field 0 "address" pointer "demo::city"'],
            "demo::country": [16, 'field 8 "cities" pointer "demo::city *" there field 4 4'],
            "demo::kd_node": [
                40, 'field 16 "low" pointer "demo::kd_node"', 'field 24 "high" pointer "demo::kd_node"',
                'field 32 "cities" pointer "demo::city *" there field 4 4'],
        })


class Hostile(ShapesTest):
    """Files that are cut off, or have bits that are flipped. The text is right or there is none; nothing crashes."""

    SOURCE = {"a.cpp": """
        struct base { base *up; };
        template <class T> struct list { T *items; unsigned count; list *next; T inside[2]; };
        struct node : base { list<node *> nodes; union { int a; float b; } u; struct { node *l, *r; } pair; };
        struct top { node *nodes; list<base> bases; top *tops[4]; } t;"""}

    def check(self, path):
        result = subprocess.run([TAIYEN, "types", path, "--root", "t=top"], capture_output=True, check=False, timeout=120)
        reported = result.stderr.decode(errors="replace")
        self.assertIn(result.returncode, (0, 1, 2), reported)
        self.assertNotIn("Sanitizer", reported)
        self.assertNotIn("runtime error", reported)
        self.assertNotIn("terminate called", reported)
        if result.returncode == 2:
            self.assertEqual(result.stdout, b"")
            self.assertIn("taiyen: ", reported)
        return result.returncode, reported

    def programs(self):
        for flags in (["-c", "-gdwarf-5"], ["-shared", "-nostdlib", "-gdwarf-4", "-fPIC"]):
            with open(self.compile(self.SOURCE, *flags, compiler="g++"), "rb") as file:
                yield file.read()

    def debug_ranges(self):
        """Where the sections of debug information lie in the file."""
        reported = subprocess.run(["readelf", "-SW", self.path("program")], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"\.debug_(?:info|abbrev|str|line|line_str)\s+\w+\s+\w+\s+(\w+)\s+(\w+)", reported)
        return [(int(offset, 16), int(size, 16)) for offset, size in found if int(size, 16)]

    def test_cut_off(self):
        path = self.path("variant")
        for program in self.programs():
            for end in range(0, len(program), max(len(program) // 60, 1)):
                with open(path, "wb") as file:
                    file.write(program[:end])
                self.check(path)

    def test_flipped(self):
        chance = random.Random(17)
        path = self.path("variant")
        refused = crashed = 0
        for program in self.programs():
            ranges = self.debug_ranges()
            for number in range(200):
                variant = bytearray(program)
                for _ in range(chance.choice((1, 1, 2, 8))):
                    if number % 8 == 0:
                        at = chance.randrange(len(variant))
                    else:
                        offset, size = chance.choice(ranges[:2] if number % 2 else ranges)
                        at = offset + chance.randrange(size)
                    variant[at] = chance.choice((variant[at] ^ 1 << chance.randrange(8), 0, 0xff, chance.randrange(256)))
                with open(path, "wb") as file:
                    file.write(variant)
                code, reported = self.check(path)
                refused += code == 2
                crashed += "libdw ended with the signal" in reported
        self.assertGreater(refused, 40)
        print(f"{refused} of 400 refused, {crashed} of them by an end of libdw", file=sys.stderr)

    def test_hostile_names(self):
        source = """
            .section .debug_abbrev
            .uleb128 1, 0x11; .byte 1; .uleb128 0, 0
            .uleb128 2, 0x13; .byte 1; .uleb128 3, 8, 0xb, 0xb, 0, 0
            .uleb128 3, 0xd; .byte 0; .uleb128 3, 8, 0x49, 0x13, 0x38, 0xb, 0, 0
            .uleb128 4, 0xf; .byte 0; .uleb128 0x49, 0x13, 0, 0
            .byte 0
            .section .debug_info
            .long end - begin
            begin: .short 4; .long .debug_abbrev; .byte 8
            .uleb128 1
            type: .uleb128 2; .asciz "a\\"b\\\\c\\n\\377 d"; .byte %d
            .uleb128 3; .asciz "field\\n"; .long %s - begin + 4; .byte %d
            .byte 0
            pointer: .uleb128 4; .long %s - begin + 4
            .byte 0
            end:
            """
        def assembled(*values):
            subprocess.run(["gcc", "-c", "-x", "assembler", "-", "-o", "named.o"], input=source % values, text=True,
                           cwd=self.folder, check=True)
            return self.path("named.o")

        sound = assembled(8, "pointer", 0, "type")
        result = subprocess.run([TAIYEN, "types", sound, "--root", b'r=a"b\\c\n\xff d'], capture_output=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b'type "a\\"b\\\\c\\x0a\\xff d" 8\n  field 0 "field\\x0a" pointer "a\\"b', result.stdout)
        for wrong, says in (((8, "type", 0, "type"), b"in itself"), ((8, "pointer", 200, "type"), b"outside"),
                            ((8, "pointer", 0, "pointer"), b"leads to itself"), ((4, "pointer", 0, "type"), b"outside"),
                            ((0, "type", 0, "type"), b"")):
            result = subprocess.run([TAIYEN, "types", assembled(*wrong), "--root", b'r=a"b\\c\n\xff d'],
                                    capture_output=True, check=False, timeout=60)
            self.assertNotIn(b"signal", result.stderr)
            if says:
                self.assertEqual((result.returncode, result.stdout), (2, b""), wrong)
                self.assertIn(says, result.stderr)


if __name__ == "__main__":
    TAIYEN, ATLAS_DEMO = (os.path.abspath(path) for path in sys.argv[1:3])
    given = sys.argv[3:]
    if given and os.path.isfile(given[0]):
        AUDIT = os.path.abspath(given.pop(0))
    unittest.main(argv=[sys.argv[0], *given])
