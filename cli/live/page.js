"use strict";
const first = JSON.parse(document.getElementById("first").textContent);
const by = (id) => document.getElementById(id);
let last = null;      // the document that is shown
let shownLook = null; // of the map
const rates = [];     // { at, rate }, at most ten minutes of them
const looks = [];     // { at, durable, asynchronous }: counts of the last ten seconds

// ---- Figures as texts. Numbers of 64 bits are strings in JSON.

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

// Rows of texts; the first is the head. Never HTML: names of roots are whatever a program wrote.
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

// Each figure of the page is filled by this, from the document alone.
function fillFigures() {
  for (const element of document.querySelectorAll("[data-figure]")) {
    const value = at(element.dataset.figure);
    element.dataset.value = value == null ? "" : String(value);
    element.textContent = value == null ? "?" : (formats[element.dataset.format] || String)(value);
  }
}

function leaves(value, path, found) {
  if (value !== null && typeof value === "object") {
    for (const [name, part] of Object.entries(value)) leaves(part, path ? path + "." + name : name, found);
  } else {
    found.push([path, value]);
  }
  return found;
}

function fillAll() {
  const table = by("figures"), all = leaves(last, "", []).slice(0, 2000);
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
  else if (last.in_use) words.push("in use, but its program tells nothing" + (last.view.no_program ? ": " + last.view.no_program : ""));
  else words.push(last.closed ? "closed in order" : "no process has it open; an open " + last.open_text);
  if (first.saved) words.push("saved at " + new Date(number(last.view.unix_ms)).toLocaleString());
  by("state").textContent = words.join("; ");
}

// From what and up to what a bucket counts: (4 + n % 4) * 2^(n / 4 + 1) ns.
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
  const live = last.live, shows = live && live.sequence !== undefined;
  show("commits", shows);
  show("log", shows);
  if (!shows) return;
  const now = number(live.unix_ns) / 1e6;
  const before = looks[looks.length - 1];
  if (!before || before.at !== now) {
    looks.push({ at: now, sequence: number(live.sequence), durable: live.durable_times, asynchronous: live.asynchronous_times });
    while (looks.length > 2 && now - looks[0].at > 10000) looks.shift();
    if (before && now > before.at) rates.push({ at: now, rate: (number(live.sequence) - before.sequence) * 1000 / (now - before.at) });
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
  const behind = number(live.sequence) - number(live.stable_sequence);
  by("held").textContent = percent(live.used_log_bytes, live.size_log_bytes) +
    " is held by the transactions behind snapshot " + count(live.epoch) + ", and free when the next snapshot is durable" +
    (behind > 0 ? "; " + count(behind) + " transactions are not on the disk yet" : "") + "; snapshots because it was full: " +
    count(live.forced_snapshots) + ", before that: " + count(live.timed_snapshots);
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
  show("undo", last.undo);
  if (last.undo) by("undo-bar").firstElementChild.style.width = percent(last.undo.undo_bytes, last.undo.undo_size).replace(" ", "");
  const roots = last.roots || [];
  show("roots", roots.length);
  fill("root-list", ["root", "address", "block", "type"], roots.slice(0, 200).map((one) =>
    [one.name, one.address, one.block_bytes === undefined ? "none" : bytes(one.block_bytes), one.type || ""]));
}

// ---- The map: cells of the whole heap; of one of them, its spans and runs.

function fillAreas(list) {
  fill("areas", ["offset", "bytes", "use", "blocks of", "live", "full"], list.areas.map((one) => ["0x" + BigInt(one.offset).toString(16),
    bytes(one.bytes), one.kind, number(one.block_bytes) ? bytes(one.block_bytes) : "",
    number(one.block_count) ? count(one.live_count) + " of " + count(one.block_count) : "",
    number(one.block_count) ? percent(one.live_count, one.block_count) : ""]));
  by("cell-note").textContent = "from " + bytes(list.from) + " on" + (number(list.more) ? ", and " + count(list.more) + " more behind these" : "");
}

function fillMap(map) {
  const size = number(map.cell_bytes), pages = size / 4096;
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
    button.title = bytes(n * size) + " on: " + bytes(size) + (cell[5] ? ", " + cell[5] + " dirty pages" : "");
    button.type = "button";
    if (cell[5]) button.className = "dirty";
    button.addEventListener("click", async () => {
      if (first.saved) return;
      fillAreas(await (await fetch("areas?from=" + n * size)).json());
    });
    return button;
  }));
  by("looked").textContent = "as of " + clock(last.view.looked_unix_ms) + ", when this was looked at; a cell is " + bytes(size);
}

async function renewMap() {
  if (last.view.looked_unix_ms === shownLook) return;
  shownLook = last.view.looked_unix_ms;
  fillMap(await (await fetch("map")).json());
  fillAreas(await (await fetch("areas?from=0")).json());
}

function render(figures) {
  last = figures;
  fillHead();
  fillCommits();
  fillSnapshots();
  fillMemory();
  fillUndo();
  fillAll();
  fillFigures();
}

render(first.figures);
shownLook = last.view.looked_unix_ms;
if (shownLook !== undefined) {
  fillMap(first.map);
  fillAreas(first.areas);
}
if (last.view.no_look) {
  show("heap", true);
  by("looked").textContent = last.view.no_look;
}
show("links", !first.saved);
if (!first.saved) {
  by("look").addEventListener("click", () => fetch("look"));
  const events = new EventSource("events");
  events.addEventListener("message", (event) => {
    render(JSON.parse(event.data));
    renewMap();
  });
  events.addEventListener("error", () => { by("state").textContent = "taiyen live has ended, or cannot be reached; this is what it told last"; });
}
