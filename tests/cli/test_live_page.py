#!/usr/bin/env python3
"""Goal: the page of `taiyen live` shows the metrics of `taiyen stat --json`, all of them, on a screen and on a phone, in
light and dark; and of a heap with 1 TB reserved. Method: headless Chromium opens it, and the page is asked what it shows.
Skipped where there is no Chromium.

    tests/cli/test_live_page.py TAIYEN MAKE_HEAP [unittest arguments]
"""

import json
import sys

import browser
import support
from live_support import Live, Program
from support import CliTest, run

SHOWN = "Object.fromEntries([...document.querySelectorAll('#metrics [data-figure]')].map(e => [e.dataset.figure, e.dataset.value]))"
# Of each figure on the page that the list of all has too: the same value.
AGREE = """[...document.querySelectorAll('[data-figure]')].every(e => e.dataset.value === '' ||
    e.dataset.value === document.querySelector(`#metrics [data-figure="${e.dataset.figure}"]`).dataset.value)"""
# What is wider than the window, but for what scrolls by itself.
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Contrast of the text with its ground, as the WCAG has it, the least of all texts that are seen.
CONTRAST = """(() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => parts(color).slice(0, 3).map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (parts(c)[3] !== 0) return c; } return 'rgb(255,255,255)'; };
  let least = 21;
  for (const e of document.querySelectorAll('h1, h2, p, td, th, b, small')) {
    if (!e.textContent.trim() || !e.offsetWidth) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
})()"""


def leaves(value, path=""):
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(part, (dict, list)) for part in value):
        for number, part in enumerate(value):
            yield from leaves(part, f"{path}.{number}")
    else:
        yield path, value


def as_text(value):
    """As JavaScript writes it."""
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


class LivePage(CliTest):
    def setUp(self):
        super().setUp()
        self.browser = browser.Browser()
        self.addCleanup(self.browser.end)

    def live(self, path):
        live = Live(path)
        self.addCleanup(live.end)
        return live

    def assert_shows(self, document):
        shown = self.browser.value(SHOWN)
        for path, value in leaves(document):
            self.assertIn(path, shown)
            if path.startswith(("availability", "page_efficiency", "classes_in_use")) and isinstance(value, float):
                self.assertAlmostEqual(float(shown[path]), value)
            else:
                self.assertEqual(shown[path], as_text(value), path)
        self.assertTrue(self.browser.value(AGREE))

    def assert_fits(self, url):
        for width in (360, 1440):
            for dark in (False, True):
                self.browser.open(url, width, dark)
                self.assertLessEqual(self.browser.value(TOO_WIDE), 0, f"{width} dark {dark}")
                self.assertGreaterEqual(self.browser.value(CONTRAST), 4.5, f"{width} dark {dark}")
                self.assertEqual(self.browser.problems(), [])

    def test_heaps_at_rest_and_of_dead_processes(self):
        for how in ("undo", "die", "commit", "archive"):
            path = self.heap(how, how)
            live = self.live(path)
            self.browser.open(live.url)
            self.assert_shows(json.loads(self.succeeds("stat", "--json", path)))
            self.assertEqual(self.browser.problems(), [])
            self.browser.open(live.url)

    def test_widths_and_colours(self):
        self.assert_fits(self.live(self.heap("described")).url)
        program = Program(self.path("used"))
        self.addCleanup(program.kill)
        self.assert_fits(self.live(self.path("used")).url)

    def test_events_change_the_page(self):
        path = self.path("used")
        program = Program(path)
        self.addCleanup(program.kill)
        self.browser.open(self.live(path).url)
        for _ in range(10):
            program.commit()
        self.browser.value("""new Promise(done => { const look = () =>
            last.live && last.live.transactions === '36' ? done() : setTimeout(look, 50); look(); })""")
        shown = self.browser.value("document.querySelector('[data-figure=\"live.transactions\"]').textContent")
        self.assertEqual(shown, "36")
        self.assertFalse(self.browser.value("document.getElementById('commits').hidden"))
        self.assertTrue(self.browser.value(AGREE))

    def test_a_cell_of_the_map_is_opened(self):
        self.browser.open(self.live(self.heap("described")).url)
        cells = "document.querySelectorAll('#map button')"
        self.assertGreater(self.browser.value(cells + ".length"), 3)
        self.browser.value(f"{cells}[3].click()")
        self.browser.value("""new Promise(done => { const look = () =>
            document.getElementById('cell-note').textContent.startsWith('from 0 B') ? setTimeout(look, 50) : done(); look(); })""")
        self.assertGreater(self.browser.value("document.querySelectorAll('#extents tr').length"), 1)

    def until(self, condition):
        self.browser.value(f"""new Promise(done => {{ const look = () =>
            {condition} ? done() : setTimeout(look, 50); look(); }})""")

    def text(self, name):
        return self.browser.value(f"document.getElementById('{name}').textContent")

    def open_levels(self, url, width):
        """From the whole heap down to a block, by clicks alone."""
        cells = "document.querySelectorAll('#map button')"
        self.browser.open(url, width)
        whole = self.browser.value(cells + ".length")
        self.browser.value(f"{cells}[6].click()")
        self.until("looked.trail.length === 2")
        self.assertLess(self.browser.value(cells + ".length"), whole)
        self.assertIn("a cell is 4.0 KiB", self.text("looked"))
        self.browser.value(f"{cells}[1].click()")
        self.until("!document.getElementById('page').hidden")
        self.assertIn("Page 0x", self.text("page-name"))
        self.browser.value("document.querySelector('#blocks button').click()")
        self.until("!document.getElementById('block').hidden")
        self.assertLessEqual(self.browser.value(TOO_WIDE), 0, width)
        self.assertGreaterEqual(self.browser.value(CONTRAST), 4.5)

    def test_levels_down_to_a_block(self):
        path = self.path("used")
        program = Program(path, "steps")
        self.addCleanup(program.kill)
        url = self.live(path).url
        root = next(one for one in json.loads(run("stat", "--json", path).stdout)["roots"] if one["name"] == "text")
        for width, row in ((1440, 16), (360, 8)):
            self.open_levels(url, width)
            self.assertIn("root text", self.text("block-note"))
            self.assertIn("8,388,608 bytes", self.text("block-name"))
            self.assertIn(root["block"], self.text("block-note"))
            rows = self.text("bytes").split("\n")
            self.assertEqual(len(rows), 4096 // row)
            self.assertEqual(rows[0].split("  |")[0].split()[1:], ["00"] * row)
            self.browser.value("document.querySelector('#trail button').click()")
            self.until("looked.trail.length === 1")
            self.assertTrue(self.browser.value("document.getElementById('block').hidden"))
            self.assertEqual(self.browser.problems(), [])

    def test_a_word_leads_to_another_block(self):
        live = self.live(self.heap("described"))
        self.browser.open(live.url)
        root = next(one for one in live.metrics()["roots"] if one["name"] == "list")
        at = int(root["block"], 16) - int(live.metrics()["base"], 16)
        self.browser.value(f"document.querySelectorAll('#map button')[{at // 4096}].click()")
        self.until("!document.getElementById('page').hidden")
        self.browser.value(f"[...document.querySelectorAll('#blocks button')].find(e => e.textContent === '{at:#x}').click()")
        self.until("!document.getElementById('block').hidden")
        self.assertIn("root list: node", self.text("block-note"))
        self.assertIn("next", self.text("fields"))
        self.browser.value("document.querySelector('#words button').click()")
        self.until(f"!document.getElementById('block-name').textContent.includes('{at:#x}:')")
        self.assertIn(": 64 bytes", self.text("block-name"))

    def test_the_heat_of_a_program(self):
        path = self.path("used")
        program = Program(path, "steps")
        self.addCleanup(program.kill)
        live = self.live(path)
        self.browser.open(live.url)
        self.until("last.live && last.live.dirty_cells")
        dirty = self.browser.value("[...document.querySelectorAll('#map button.dirty')].length")
        self.assertEqual(dirty, self.browser.value("last.live.dirty_cells.slice(0, looked.map.cells.length).filter(n => n).length"))
        self.assertGreater(dirty, 0)
        shares = "Object.fromEntries([...document.querySelectorAll('#map button')].map((e, n) => [n, Number(e.dataset.share)]))"
        for cell, share in self.browser.value(shares).items():
            self.assertAlmostEqual(share, self.browser.value(f"last.live.dirty_cells[{cell}]") * 4096 / 16384)
        self.browser.value("document.getElementById('as-heat').click()")
        self.assertTrue(self.browser.value("document.getElementById('map').classList.contains('heat')"))
        self.assertIn("dirty pages", self.browser.value("document.querySelector('#map button.dirty').title"))
        self.assertIn("counted at", self.text("heat-note"))

    def test_the_heat_of_a_heap_that_nobody_has_looked_into(self):
        path = self.path("wide")
        program = Program(path, "wide")
        self.addCleanup(program.kill)
        live = self.live(path)
        self.assertNotIn("looked_unix_ms", live.metrics()["view"])
        self.browser.open(live.url)
        self.until("looked.map && last.live && last.live.dirty_cells")
        cells = "document.querySelectorAll('#map button')"
        self.assertEqual(self.browser.value(cells + ".length"), self.browser.value("last.live.dirty_cells.length"))
        self.assertGreater(self.browser.value("document.querySelectorAll('#map button.dirty').length"), 0)
        self.assertTrue(self.browser.value("document.getElementById('map').classList.contains('heat')"))
        self.assertIn("large", self.text("looked"))
        self.browser.value(f"{cells}[3].click()")  # there is nothing to be opened yet
        self.browser.value("document.getElementById('look').click()")
        self.until("looked.map.epoch !== undefined")
        self.assertIn("as of snapshot 1", self.text("looked"))
        self.browser.value(f"{cells}[3].click()")
        self.until("looked.trail.length === 2")
        self.assertEqual(self.browser.problems(), [])

    def test_a_heap_that_grows_after_the_look(self):
        path = self.path("used")
        program = Program(path)
        self.addCleanup(program.kill)
        self.browser.open(self.live(path).url)
        cells = "document.querySelectorAll('#map button')"
        known = self.browser.value(cells + ".length")
        for _ in range(100):
            program.commit()
        self.until(f"{cells}.length > {known}")
        self.until(f"{cells}.length === Math.ceil(Number(last.live.touched_bytes) / 4096)")
        self.assertTrue(self.browser.value(f"{cells}[{known}].className.includes('new')"))
        self.assertIn("not used yet", self.browser.value(f"{cells}[{known}].title"))
        self.browser.value("document.getElementById('look').click()")
        self.until("looked.map.cells.length * 4096 >= Number(last.live.touched_bytes)")
        self.assertEqual(self.browser.value("document.querySelectorAll('#map button.new').length"), 0)
        self.assertEqual(self.browser.problems(), [])

    def test_undo_of_a_program(self):
        path = self.path("used")
        program = Program(path, "steps")
        self.addCleanup(program.kill)
        self.browser.open(self.live(path).url)
        for _ in range(3):
            program.commit()
        self.until("last.live && last.live.undo && last.live.undo.undoable === '4'")
        self.assertEqual(self.browser.value("document.querySelector('[data-figure=\"live.undo.undoable\"]').textContent"), "4")
        self.assertFalse(self.browser.value("document.getElementById('undo-now').hidden"))
        self.assertTrue(self.browser.value("document.getElementById('undo-then').hidden"))
        self.assertFalse(self.browser.value("document.getElementById('unbound').hidden"))
        self.assertTrue(self.browser.value(AGREE))

    def test_a_terabyte_reserved(self):
        path = self.path("large")
        self.succeeds("create", path, "--limit", "1T")
        live = self.live(path)
        self.browser.open(live.url)
        self.assert_shows(json.loads(self.succeeds("stat", "--json", path)))
        self.assertEqual(self.browser.value("document.querySelector('[data-figure=limit_bytes]').textContent"), "1.0 TiB")

    def test_a_saved_page(self):
        path = self.heap("undo")
        self.succeeds("live", path, "-o", self.path("page.html"))
        self.browser.open("file://" + self.path("page.html"))
        self.assert_shows(json.loads(run("stat", "--json", path).stdout))
        self.assertEqual(self.browser.problems(), [])


if __name__ == "__main__":
    if browser.find() is None:
        print("skipped: there is no Chromium here")
        sys.exit(77)
    support.main()
