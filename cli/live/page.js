"use strict";
const first = JSON.parse(document.getElementById("first").textContent);
const by = (id) => document.getElementById(id);
let last = null;      // the document that is shown
let shownLook = null; // of the map
const rates = [];     // { at, rate }, at most ten minutes of them
const looks = [];     // { at, durable, asynchronous }: counts of the last ten seconds

// ---- Metrics as texts. 64-bit integers are strings in JSON.

const number = (value) => Number(value);
const count = (value) => Math.round(number(value)).toLocaleString("en-US");
function bytes(value) {
  let size = number(value), unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (size >= 1024 && unit + 1 < units.length) { size /= 1024; unit++; }
  return (unit === 0 ? size : size.toFixed(1)) + " " + units[unit];
}
function time(ns) {
  ns = number(ns);
  if (ns < 1e3) return Math.round(ns) + " ns";
  if (ns < 1e6) return (ns / 1e3).toPrecision(3) + " µs";
  if (ns < 1e9) return (ns / 1e6).toPrecision(3) + " ms";
  return (ns / 1e9).toPrecision(3) + " s";
}
const clock = (ms) => new Date(number(ms)).toLocaleTimeString();
const percent = (part, whole) => (number(whole) ? (100 * number(part) / number(whole)).toFixed(1) : "0.0") + " %";
const formats = { bytes, count, time };

const at = (path) => path.split(".").reduce((part, name) => (part == null ? part : part[name]), last);
const show = (id, is) => { by(id).hidden = !is; };

// Rows of texts; the first is the head. Never HTML: a program may give roots any names.
function fill(id, head, rows) {
  const table = by(id), made = [];
  const row = (cells, kind) => {
    const one = document.createElement("tr");
    for (const cell of cells) {
      const field = document.createElement(kind);
      field.textContent = cell;
      one.append(field);
    }
    made.push(one);
    return one;
  };
  if (rows.length) row(head, "th");
  for (const cells of rows) row(cells, "td");
  table.replaceChildren(...made);
}

// Fills each figure of the page, from the document alone.
function fillFigures() {
  for (const element of document.querySelectorAll("[data-figure]")) {
    const value = at(element.dataset.figure);
    element.dataset.value = value == null ? "" : String(value);
    element.textContent = value == null ? "?" : (formats[element.dataset.format] || String)(value);
  }
}

function leaves(value, path, found) {
  const isList = Array.isArray(value) && value.every((part) => part === null || typeof part !== "object"); // one figure
  if (value !== null && typeof value === "object" && !isList) {
    for (const [name, part] of Object.entries(value)) leaves(part, path ? path + "." + name : name, found);
  } else {
    found.push([path, value]);
  }
  return found;
}

function fillAll() {
  const table = by("metrics"), all = leaves(last, "", []).slice(0, 2000);
  if (table.rows.length === all.length && all.every(([path], n) => table.rows[n].cells[1].dataset.figure === path)) return;
  table.replaceChildren(...all.map(([path]) => {
    const row = document.createElement("tr"), name = document.createElement("td"), value = document.createElement("td");
    name.textContent = path;
    value.dataset.figure = path;
    row.append(name, value);
    return row;
  }));
}

// ---- Parts of the page

function fillHead() {
  const live = last.live;
  document.title = last.path.split("/").pop() + " - taiyen live";
  by("name").textContent = last.path;
  const words = [last.kind + " heap"];
  if (live) words.push("open in process " + live.process + ", as of " + clock(number(live.unix_ns) / 1e6));
  else if (last.in_use) words.push("in use, but its program reports nothing" + (last.view.no_program ? ": " + last.view.no_program : ""));
  else words.push(last.closed ? "closed in order" : "no process has it open; an open " + last.open_text);
  if (first.saved) words.push("saved at " + new Date(number(last.view.unix_ms)).toLocaleString());
  by("state").textContent = words.join("; ");
}

// The durations that a bucket counts, from and to: (4 + n % 4) * 2^(n / 4 + 1) ns.
const bucket = (n) => (4 + n % 4) * 2 ** (Math.floor(n / 4) + 1);
function percentile(counts, share) {
  const all = counts.reduce((sum, one) => sum + one, 0);
  let left = all * share;
  for (let n = 0; n < counts.length; n++) {
    left -= counts[n];
    if (left <= 0 && counts[n]) return time(bucket(n + 1));
  }
  return "";
}
function difference(now, before) {
  return now.map((value, n) => number(value) - number((before || [])[n] || 0));
}

function fillCommits() {
  const live = last.live, shows = live && live.lsn !== undefined;
  show("commits", shows);
  show("log", shows);
  if (!shows) return;
  const now = number(live.unix_ns) / 1e6;
  const before = looks[looks.length - 1];
  if (!before || before.at !== now) {
    looks.push({ at: now, lsn: number(live.lsn), durable: live.durable_times, asynchronous: live.asynchronous_times });
    while (looks.length > 2 && now - looks[0].at > 10000) looks.shift();
    if (before && now > before.at) rates.push({ at: now, rate: (number(live.lsn) - before.lsn) * 1000 / (now - before.at) });
    while (rates.length && now - rates[0].at > 600000) rates.shift();
  }
  by("rate").textContent = rates.length ? count(rates[rates.length - 1].rate) : "0";
  const most = Math.max(1, ...rates.map((one) => one.rate)), from = rates.length ? rates[0].at : now;
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", rates.map((one, n) => (n ? "L" : "M") + (600 * (one.at - from) / Math.max(1, now - from)).toFixed(1) + " " +
    (76 - 72 * one.rate / most).toFixed(1)).join(""));
  by("rates").replaceChildren(path);
  by("rates-note").textContent = rates.length > 1 ? "the last " + time((now - from) * 1e6) + ", up to " + count(most) + " a second" : "";
  const since = looks[0], rows = [];
  for (const [name, words] of [["durable", "waits for the disk"], ["asynchronous", "does not wait"]]) {
    const counts = difference(live[name + "_times"], looks.length > 1 ? since[name] : []);
    if (counts.some((one) => one > 0))
      rows.push([words, ...[0.5, 0.9, 0.99, 1].map((share) => percentile(counts, share))]);
  }
  fill("times", ["commit, the last 10 s", "50 %", "90 %", "99 %", "all"], rows);
  by("ring").firstElementChild.style.width = percent(live.used_log_bytes, live.size_log_bytes).replace(" ", "");
  const behind = number(live.lsn) - number(live.durable_lsn);
  by("held").textContent = percent(live.used_log_bytes, live.size_log_bytes) +
    " is held by the transactions behind snapshot " + count(live.epoch) + ", and free when the next snapshot is durable" +
    (behind > 0 ? "; " + count(behind) + " transactions are not on the disk yet" : "") + "; snapshots because it was full: " +
    count(live.forced_snapshots) + ", before that: " + count(live.automatic_snapshots);
}

function fillSnapshots() {
  const live = last.live;
  show("snapshots", live && live.snapshots !== undefined);
  if (!live || live.snapshots === undefined) return;
  const all = live.newest_snapshots, end = number(live.unix_ns);
  const from = all.length ? number(all[0].unix_ns) : end, most = Math.max(1, ...all.map((one) => number(one.bytes)));
  by("line").replaceChildren(...all.map((one) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const height = Math.max(2, 112 * number(one.bytes) / most);
    rect.setAttribute("x", 592 * (number(one.unix_ns) - from) / Math.max(1, end - from));
    rect.setAttribute("width", 6);
    rect.setAttribute("y", 118 - height);
    rect.setAttribute("height", height);
    const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    title.textContent = "snapshot " + one.epoch + ": " + bytes(one.bytes) + ", pause " + time(one.pause_ns);
    rect.append(title);
    return rect;
  }));
  by("line-note").textContent = all.length ? "from " + clock(from / 1e6) + " to " + clock(end / 1e6) + ", up to " + bytes(most) : "none yet";
  show("next", live.dirty_pages !== undefined);
  fill("newest", ["snapshot", "at", "pages", "bytes", "pause", "durable in"],
    all.slice(-8).reverse().map((one) => [one.epoch, clock(number(one.unix_ns) / 1e6), count(one.pages), bytes(one.bytes),
      time(one.pause_ns), time(one.durable_ns)]));
}

function fillMemory() {
  const live = last.live, classes = (live && live.classes_in_use) || last.classes_in_use || [];
  const touched = live ? live.touched_bytes : last.touched_bytes;
  by("touched").textContent = touched === undefined ? "?" : bytes(touched);
  const bound = live && live.memory_bound_bytes !== undefined, counted = bound && live.copies_bytes !== undefined;
  show("bound", counted);
  show("unbound", bound && !counted);
  if (bound) by("bound-by").textContent = number(live.memory_bound_bytes) ? "by its options" : "on this machine";
  if (bound) by("unbound").textContent = "It has touched no more than the " + bytes(live.memory_allowed_bytes) +
    (number(live.memory_bound_bytes) ? " that its options let it keep" : " that this machine has room for") + ": nothing is given back.";
  by("classes-bar").replaceChildren(...classes.map((one) => {
    const part = document.createElement("span");
    part.style.flexGrow = number(one.span_bytes);
    part.title = (number(one.block_bytes) ? bytes(one.block_bytes) : "whole pages") + ": " + bytes(one.span_bytes);
    return part;
  }));
  fill("classes", ["block", "spans", "memory", "live blocks", "live", "full"], classes.map((one) => [
    number(one.block_bytes) ? count(one.block_bytes) + " B" : "whole pages", count(one.spans), bytes(one.span_bytes),
    count(one.live_blocks), bytes(one.live_bytes), percent(one.live_bytes, one.span_bytes)]));
}

function fillUndo() {
  const now = last.live && last.live.undo, then = last.undo;
  show("undo", now || then);
  show("undo-now", now);
  show("undo-then", !now && then);
  if (now || then)
    by("undo-bar").firstElementChild.style.width = (now ? percent(now.used_bytes, now.room_bytes) : percent(then.undo_bytes, then.undo_size)).replace(" ", "");
  by("undo-when").textContent = now ? "as of the last call of undo" : "as of the look into the heap";
  const roots = last.roots || [];
  show("roots", roots.length);
  fill("root-list", ["root", "address", "block", "type"], roots.slice(0, 200).map((one) =>
    [one.name, one.address, one.block_bytes === undefined ? "none" : bytes(one.block_bytes), one.type || ""]));
}

// ---- The map: cells of the whole heap; cells of one of them, down to pages; blocks of a page; one block.

const hex = (offset) => "0x" + BigInt(offset).toString(16);
const looked = { map: null, trail: [], cell: null }; // what is shown: the cells, and the path of parts that they are in
const heat = { counted: null, cell: 0, pages: [], since: [], grew: [] }; // by cell of the program: when it became dirty, and when dirtier
let asked = 0; // to drop an older answer that arrives late

async function ask(name) {
  const mine = ++asked;
  try {
    const answer = await (await fetch(name)).json();
    return mine === asked ? answer : null;
  } catch {
    return null; // the server has ended: the events report it
  }
}

function fillExtents(list) {
  fill("extents", ["offset", "bytes", "use", "blocks of", "live", "full"], list.extents.map((one) => [hex(one.offset),
    bytes(one.bytes), one.kind, number(one.block_bytes) ? bytes(one.block_bytes) : "",
    number(one.block_count) ? count(one.live_count) + " of " + count(one.block_count) : "",
    number(one.block_count) ? percent(one.live_count, one.block_count) : ""]));
  by("cell-note").textContent = "from " + bytes(list.from) + " on" + (number(list.more) ? ", and " + count(list.more) + " more behind these" : "");
}

function noteHeat() {
  const live = last.live;
  if (!live || !live.dirty_cells || live.counted_unix_ns === heat.counted) return;
  const now = number(live.counted_unix_ns) / 1e6, cell = number(live.dirty_cell_bytes), isSame = cell === heat.cell;
  heat.since = live.dirty_cells.map((pages, n) => (pages ? (isSame && heat.pages[n] ? heat.since[n] : now) : 0));
  heat.grew = live.dirty_cells.map((pages, n) => (isSame && heat.counted && pages > (heat.pages[n] || 0) ? now : isSame ? heat.grew[n] || 0 : 0));
  Object.assign(heat, { counted: live.counted_unix_ns, cell, pages: live.dirty_cells });
}

// The dirty share of a part, also in words: from the program's last count; without a program, the pages that the
// journal has and the image does not.
function dirtOf(from, size, waiting) {
  if (!heat.pages.length || !last.live || !last.live.dirty_cells)
    return { share: waiting * 4096 / size, grew: 0, words: waiting ? ", " + count(waiting) + " pages not in the image" : "" };
  const begin = Math.floor(from / heat.cell), end = Math.max(begin + 1, Math.ceil((from + size) / heat.cell));
  const cells = heat.pages.slice(begin, end), dirty = cells.reduce((sum, one) => sum + one, 0);
  const now = number(last.live.unix_ns) / 1e6, whole = Math.max(1, cells.length) * heat.cell;
  const since = heat.since.slice(begin, end).filter((at) => at), grew = Math.max(0, ...heat.grew.slice(begin, end));
  const part = whole > size ? " of the " + count(whole / 4096) + " around it" : "";
  return { share: Math.min(1, dirty * 4096 / whole), grew: grew && now - grew < 5000, words: dirty ? ", " + count(dirty) +
    " dirty pages" + part + ", for " + time((now - Math.min(...since)) * 1e6) : "" };
}

// Cells that the program has begun to use since the inspection; their use is not known.
function addNewCells(size) {
  if (!last.live || looked.trail.length !== 1) return;
  const wanted = Math.min(1024, Math.ceil(number(last.live.touched_bytes) / size));
  while (by("map").children.length < wanted) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "new";
    button.append(document.createElement("i"));
    by("map").append(button);
  }
}

function paintHeat() {
  noteHeat();
  const map = looked.map, size = map ? number(map.cell_bytes) : 0;
  addNewCells(size);
  [...by("map").children].forEach((button, n) => {
    const from = number(map.from) + n * size, isNew = n >= map.cells.length, dirt = dirtOf(from, size, isNew ? 0 : map.cells[n][5]);
    button.lastElementChild.style.opacity = dirt.share ? 0.25 + 0.75 * dirt.share : 0;
    button.dataset.share = dirt.share;
    button.classList.toggle("dirty", dirt.share > 0);
    button.classList.toggle("grew", Boolean(dirt.grew));
    button.title = hex(from) + ": " + bytes(size) + (isNew ? ", not used yet at the look" : "") + dirt.words;
  });
  const live = last.live, isCounted = live && live.dirty_cells;
  by("heat-note").textContent = isCounted ? "Dirty pages are those of the program, counted at " + clock(number(live.counted_unix_ns) / 1e6) :
    live ? "Dirty pages are not counted: the heap is an archive, or more than 4 GiB are touched" :
    "Dirty pages are those that the journal has and the image not yet";
}

function showAs(isHeat) {
  by("map").classList.toggle("heat", isHeat);
  by("as-heat").setAttribute("aria-pressed", isHeat);
  by("as-use").setAttribute("aria-pressed", !isHeat);
}

function fillTrail() {
  by("trail").replaceChildren(...looked.trail.map((part, n) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = n ? bytes(part.bytes) + " at " + hex(part.from) : "whole heap";
    button.addEventListener("click", () => openPart(looked.trail.slice(0, n + 1)));
    return button;
  }));
}

function fillMap(map) {
  const size = number(map.cell_bytes), pages = size / 4096;
  looked.map = map;
  show("heap", map.cells.length);
  by("map").replaceChildren(...map.cells.map((cell, n) => {
    const button = document.createElement("button");
    ["small", "room", "large", "free", "control"].forEach((kind, part) => {
      if (!cell[part]) return;
      const span = document.createElement("span");
      span.className = kind;
      span.style.width = (100 * cell[part] / pages) + "%";
      button.append(span);
    });
    button.append(document.createElement("i"));
    button.type = "button";
    button.addEventListener("click", () => openCell(number(map.from) + n * size, size, button));
    return button;
  }));
  by("looked").textContent = map.epoch === undefined ? last.view.no_look || "" : "as of snapshot " + map.epoch + ", looked at " + clock(last.view.looked_unix_ms) + "; a cell is " + bytes(size);
  fillTrail();
  paintHeat();
}

async function openPart(trail) {
  const part = trail[trail.length - 1];
  const map = await ask("map?from=" + part.from + "&bytes=" + part.bytes);
  if (!map) return;
  looked.trail = trail;
  show("page", false);
  show("block", false);
  fillMap(map);
  const extents = await ask("extents?from=" + part.from);
  if (extents) fillExtents(extents);
}

// A cell of several pages opens as a map of its own; a cell of one page shows its blocks.
async function openCell(from, size, button) {
  if (first.saved || looked.map.epoch === undefined) return;
  if (size > 4096) {
    await openPart([...looked.trail, { from, bytes: size }]);
    return;
  }
  for (const other of by("map").querySelectorAll(".at")) other.classList.remove("at");
  button.classList.add("at");
  const page = await ask("blocks?from=" + from);
  if (!page) return;
  fillPage(page);
  const extents = await ask("extents?from=" + from);
  if (extents) fillExtents(extents);
}

const uses = { span: "small blocks", run: "one block of whole pages", free: "free", control: "the heap's own tables" };

function fillPage(page) {
  show("page", true);
  show("block", false);
  by("page-name").textContent = "Page " + hex(page.from) + ": " + (uses[page.kind] || "never used") +
    (page.kind === "span" ? " of " + count(page.block_bytes) + " bytes" : "") + ", as of snapshot " + page.epoch +
    (page.dirty ? "; the journal has it, the image not yet" : "");
  fill("blocks", ["block", "bytes", "is", "root"], page.blocks.map((one) => ["", count(one.bytes),
    (one.live ? "live" : "free") + (one.own ? ", the library's" : ""), (one.roots || []).join(", ")]));
  page.blocks.forEach((one, n) => {
    const field = by("blocks").rows[n + 1].cells[0];
    field.append(one.live ? opensBlock(one.offset, hex(one.offset)) : hex(one.offset));
  });
}

function opensBlock(offset, words) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words;
  button.addEventListener("click", async () => {
    const answer = await ask("block?from=" + offset);
    if (answer) fillBlock(answer);
  });
  return button;
}

function hexRows(digits) {
  const row = window.innerWidth < 600 ? 8 : 16, lines = [];
  for (let at = 0; at < digits.length / 2; at += row) {
    let numbers = "", letters = "";
    for (let n = at; n < at + row; n++) {
      const digit = digits.slice(2 * n, 2 * n + 2), code = parseInt(digit, 16);
      numbers += " " + (digit || "  ");
      if (digit) letters += code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : ".";
    }
    lines.push("+" + at.toString(16).padEnd(4) + numbers + "  |" + letters + "|");
  }
  return lines.join("\n");
}

// Its type, if a root leads to it and the heap keeps type descriptors; its first bytes; and where its words lead.
function fillBlock(answer) {
  show("block", true);
  const block = answer.block;
  by("block-name").textContent = "Block at " + hex(answer.offset) + (block ? ": " + count(block.size_bytes) + " bytes" : "");
  by("block-note").textContent = (block ? block.address + "; " + (block.own ? "the library's; " : "") +
    block.roots.map((root) => "root " + root.name + (root.type ? ": " + root.type : "") + "; ").join("") +
    (number(block.size_bytes) * 2 > block.bytes.length ? "the first " + count(block.bytes.length / 2) + " bytes; " : "") :
    answer.error.text + "; ") + (answer.epoch === undefined ? "" : "as of snapshot " + answer.epoch);
  by("bytes").textContent = block ? hexRows(block.bytes) : "";
  fill("fields", ["field of " + (block && block.type || ""), "offset", "kind", "leads to"], (block && block.fields || []).map((one) =>
    [one.name, one.offset, one.kind, one.type || ""]));
  const words = block ? block.words : [];
  fill("words", ["word at", "leads to"], words.map((one) => ["+" + hex(one.offset), one.block ? "" : "code: " + one.object + " +" + hex(one.object_offset)]));
  words.forEach((one, n) => {
    if (one.block && last.base) by("words").rows[n + 1].cells[1].append(opensBlock(BigInt(one.block) - BigInt(last.base),
      "block " + one.block + " of " + count(one.block_bytes) + " bytes"));
  });
}

// For a large heap that was not inspected, the dirty cells are known all the same.
function showHeatAlone() {
  const live = last.live;
  if (last.view.looked_unix_ms !== undefined || !live || !live.dirty_cells) return;
  if (!looked.map || looked.map.cells.length !== live.dirty_cells.length || looked.map.cell_bytes !== live.dirty_cell_bytes) {
    fillMap({ from: 0, cell_bytes: live.dirty_cell_bytes, cells: live.dirty_cells.map(() => [0, 0, 0, 0, 0, 0]) });
    showAs(true);
  }
}

async function renewMap() {
  if (last.view.looked_unix_ms === shownLook) return;
  shownLook = last.view.looked_unix_ms;
  await openPart(looked.trail.length ? looked.trail : [{ from: 0, bytes: 0 }]);
}

function render(metrics) {
  last = metrics;
  fillHead();
  fillCommits();
  fillSnapshots();
  fillMemory();
  fillUndo();
  showHeatAlone();
  if (looked.map) paintHeat();
  fillAll();
  fillFigures();
}

render(first.metrics);
shownLook = last.view.looked_unix_ms;
if (shownLook !== undefined) {
  looked.trail = [{ from: 0, bytes: 0 }];
  fillMap(first.map);
  fillExtents(first.extents);
}
if (last.view.no_look) {
  show("heap", true);
  by("looked").textContent = last.view.no_look;
}
show("links", !first.saved);
by("as-use").addEventListener("click", () => showAs(false));
by("as-heat").addEventListener("click", () => showAs(true));
if (!first.saved) {
  by("look").addEventListener("click", () => fetch("look"));
  const events = new EventSource("events");
  events.addEventListener("message", (event) => {
    render(JSON.parse(event.data));
    renewMap();
  });
  events.addEventListener("error", () => { by("state").textContent = "taiyen live has ended, or cannot be reached; this is its last report"; });
}
