// All Services: a list of rows with a fixed height, of which only the visible ones exist.

import { h, legend, replace, s, setText } from "./dom.js";
import { ago, importState, number, plural, seconds } from "./format.js";
import { on, state, waitingOf } from "./store.js";

/** Rows above and below the visible ones. */
const SPARE = 6;
const ZONES_MAX = 4;
/** A slice is full with so many endpoints, unless it has more. */
const SLICE_FULL = 100;

const COLUMNS = [
  { id: "name", label: "Service", order: (a, b) => compare(a.key, b.key) },
  { id: "ready", label: "Endpoints by zone", order: (a, b) => b.nReady + b.nUnready - a.nReady - a.nUnready },
  { id: "slices", label: "Slices", order: (a, b) => b.sliceCount - a.sliceCount },
  { id: "state", label: "State", order: (a, b) => rank(b) - rank(a) || b.nUnready - a.nUnready },
  { id: "changed", label: "Changed", order: (a, b) => b.changedMs - a.changedMs },
];
const collator = new Intl.Collator("en", { numeric: true });
const compare = (a, b) => collator.compare(a, b);

/** Survives going to a Service and back. */
const memory = { search: "", sort: "name", reversed: false, top: 0, active: "" };

function rank(row) {
  const waiting = waitingOf(row.key);
  if (waiting?.state === "backing_off" || waiting?.lastError) return 4;
  if (waiting || isRefused(row)) return 3;
  return row.nUnready + row.nExcluded > 0 ? 2 : row.nLeaving > 0 ? 1 : 0;
}

/** It asks for the endpoints of another Service, and does not have them. */
const isRefused = (row) => Boolean(row.import) && row.import.status !== "True";

export function overview() {
  const view = new Overview();
  return {
    title: "Services",
    elements: view.elements,
    entered: () => view.entered(),
    leave: () => view.leave(),
  };
}

class Overview {
  constructor() {
    this.shown = [];
    this.drawn = new Map();
    this.search = h("input", {
      class: "field", type: "search", placeholder: "Search namespace/name", "aria-label": "Search Services",
      value: memory.search, autocomplete: "off", spellcheck: "false",
      on: {
        input: () => { memory.search = this.search.value; this.scroller.scrollTop = 0; this.arrange(); },
        keydown: (event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); this.scroller.focus(); } },
      },
    });
    this.note = h("span", { class: "note", role: "status" });
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.empty = h("p", { class: "empty", hidden: true });
    this.scroller = h("div", {
      class: "scroller", tabindex: "0", role: "grid", "aria-label": "Services", "aria-readonly": "true",
      on: {
        scroll: () => { memory.top = this.scroller.scrollTop; this.draw(); },
        keydown: (event) => this.onKey(event),
        focus: () => { if (!this.activeRow() && this.shown.length > 0) this.activate(0); else this.draw(); },
      },
    }, this.empty, this.space);
    this.columns = h("div", { class: "columns" }, COLUMNS.map((column) => this.columnButton(column)));
    this.elements = [
      h("div", { class: "tools" }, this.search, legend(), this.note),
      h("div", { class: "list" }, this.columns, this.scroller),
    ];
    this.stops = [on("rows", () => this.later()), on("status", () => this.later())];
    this.resized = new ResizeObserver(() => { this.measure(); this.draw(); });
    this.ages = setInterval(() => this.draw(true), 5000);
  }

  entered() {
    this.resized.observe(this.scroller);
    this.measure();
    this.arrange();
    this.scroller.scrollTop = memory.top;
    this.draw();
  }

  leave() {
    this.stops.forEach((stop) => stop());
    this.resized.disconnect();
    clearInterval(this.ages);
    clearTimeout(this.timer);
  }

  columnButton({ id, label }) {
    const sort = () => {
      memory.reversed = memory.sort === id ? !memory.reversed : false;
      memory.sort = id;
      this.arrange();
    };
    return h("button", {
      type: "button", class: id === "changed" ? "last" : "", "data-column": id, on: { click: sort },
    }, label);
  }

  measure() {
    this.height = matchMedia("(max-width: 700px)").matches ? 92 : 58;
    const gutter = this.scroller.offsetWidth - this.scroller.clientWidth;
    this.columns.style.setProperty("--gutter", `${gutter}px`);
  }

  /** Sorting 10,000 rows for each message would be too often. */
  later() {
    if (this.timer) return;
    this.timer = setTimeout(() => { this.timer = null; this.arrange(); }, state.rows.size > 2000 ? 500 : 60);
  }

  arrange() {
    const words = memory.search.toLowerCase().split(/\s+/).filter(Boolean);
    const isFound = (row) => words.every((word) => row.search.includes(word));
    const rows = [...state.rows.values()].filter(isFound);
    const { order } = COLUMNS.find((column) => column.id === memory.sort);
    rows.sort((a, b) => order(a, b) || compare(a.key, b.key));
    if (memory.reversed) rows.reverse();
    this.shown = rows;
    this.zones = zonesOf(state.rows);
    this.space.style.setProperty("--zones", String(Math.max(3, this.zones.length)));
    this.scroller.setAttribute("aria-rowcount", String(rows.length));
    this.space.style.setProperty("height", `${rows.length * this.height}px`);
    this.empty.hidden = rows.length > 0;
    setText(this.empty, emptyText());
    setText(this.note, rows.length === state.rows.size
      ? plural(rows.length, "Service") : `${number(rows.length)} of ${plural(state.rows.size, "Service")}`);
    for (const button of this.columns.children) {
      const column = COLUMNS.find((one) => one.id === button.dataset.column);
      const isSorted = column.id === memory.sort;
      replace(button, column.label, isSorted ? h("span", { class: "arrow", "aria-hidden": "true" }, memory.reversed ? " ↑" : " ↓") : null);
      button.setAttribute("aria-pressed", String(isSorted));
      button.setAttribute("aria-label", `Sort by ${column.label}${isSorted ? (memory.reversed ? ", reversed" : ", sorted") : ""}`);
    }
    this.draw(true);
  }

  /** Creates and moves the visible rows. Rows that stay keep their elements. */
  draw(isFresh = false) {
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - SPARE);
    const last = Math.min(this.shown.length, Math.ceil((scrollTop + clientHeight) / this.height) + SPARE);
    const keep = new Map();
    for (let index = first; index < last; index += 1) {
      const row = this.shown[index];
      let element = this.drawn.get(row.key);
      const content = signature(row);
      if (!element || (isFresh && element.content !== content)) {
        const wasDrawn = Boolean(element);
        element?.remove();
        element = rowElement(row, this.zones);
        element.content = content;
        if (wasDrawn && row.hotUntil > Date.now()) element.classList.add("hot");
        this.space.append(element);
      }
      element.style.setProperty("transform", `translateY(${index * this.height}px)`);
      element.setAttribute("aria-rowindex", String(index + 1));
      element.classList.toggle("active", row.key === memory.active);
      keep.set(row.key, element);
    }
    for (const [key, element] of this.drawn) if (keep.get(key) !== element) element.remove();
    this.drawn = keep;
    const active = this.drawn.get(memory.active);
    if (active) this.scroller.setAttribute("aria-activedescendant", active.id);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  activeRow() {
    return this.shown.find((row) => row.key === memory.active);
  }

  activate(index) {
    const row = this.shown[Math.min(Math.max(index, 0), this.shown.length - 1)];
    if (!row) return;
    memory.active = row.key;
    const top = this.shown.indexOf(row) * this.height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.scroller.scrollTop = top + this.height - clientHeight;
    this.draw();
  }

  onKey(event) {
    const now = this.shown.findIndex((row) => row.key === memory.active);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
    const moves = { ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page, Home: 0, End: this.shown.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      this.activate(moves[event.key]);
    } else if (event.key === "Enter" && this.activeRow()) {
      location.hash = address(this.activeRow());
    }
  }
}

const address = (row) => `#/service/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;

function emptyText() {
  if (!state.isLoaded) return "Loading the Services…";
  return state.rows.size === 0 ? "The cluster has no Services." : "No Service has this in its name.";
}

/** The zones that most Services have, in order, so that columns stay where they are. */
function zonesOf(rows) {
  const found = new Map();
  for (const row of rows.values()) for (const zone of Object.keys(row.zones)) found.set(zone, (found.get(zone) ?? 0) + 1);
  const named = [...found.keys()].filter(Boolean).sort((a, b) => found.get(b) - found.get(a)).slice(0, ZONES_MAX);
  return named.sort(compare);
}

function signature(row) {
  const waiting = waitingOf(row.key);
  return JSON.stringify([row.zones, row.slices, row.sliceCount, row.excluded, row.source, row.deleting, row.import,
    waiting?.state, waiting?.lastError, ago(row.changedAt)]);
}

function rowElement(row, zones) {
  const open = (event) => {
    if (!event.target.closest("a")) location.hash = address(row);
  };
  return h("div", { class: "row", role: "row", id: `row-${row.key}`, "data-key": row.key, on: { click: open } },
    h("div", { class: "name", role: "gridcell" },
      h("a", { href: address(row), tabindex: "-1" }, row.name), h("span", { class: "under" }, under(row))),
    h("div", { role: "gridcell", class: "zones" }, zoneBars(row, zones)),
    h("div", { role: "gridcell", class: "fills", "aria-label": plural(row.sliceCount, "slice") }, fills(row)),
    stateCell(row),
    h("div", { role: "gridcell", class: "changed" }, ago(row.changedAt)));
}

function under(row) {
  const source = row.import ? ` · from ${row.import.from}` : { manual: " · no selector", external_name: " · ExternalName" }[row.source] ?? "";
  return `${row.namespace}${source}${row.deleting ? " · being deleted" : ""}`;
}

function zoneBars(row, zones) {
  const others = Object.keys(row.zones).filter((zone) => !zones.includes(zone));
  if (Object.keys(row.zones).length === 0) return [h("span", { class: "muted" }, row.source === "external_name" ? "DNS alias" : "no endpoints")];
  const rest = others.reduce((sum, zone) => sum.map((n, index) => n + row.zones[zone][index]), [0, 0, 0]);
  const hasRest = rest.some((n) => n > 0);
  const most = Math.max(1, ...zones.map((zone) => total(row.zones[zone] ?? [])), total(rest));
  // A Service without any of the common zones shows its own ones only.
  const isElsewhere = zones.every((zone) => !row.zones[zone]);
  const bars = isElsewhere ? [] : zones.map((zone) => zoneBar(zone, row.zones[zone] ?? [0, 0, 0], most));
  if (hasRest) bars.push(zoneBar(others.length === 1 && others[0] === "" ? "no zone" : "other", rest, most));
  return bars;
}

const total = (counts) => counts.reduce((sum, n) => sum + n, 0);

function zoneBar(name, [ready, unready, leaving], most) {
  const part = (kind, n) => (n > 0 ? h("i", { class: kind, style: { "flex-grow": n } }) : null);
  const rest = most - ready - unready - leaving;
  return h("div", { class: "zone" },
    h("div", { class: "label" }, h("span", null, name),
      h("span", null, h("b", null, number(ready)),
        unready > 0 ? h("span", { class: "u", title: `${unready} not ready` }, ` +${unready}`) : null,
        leaving > 0 ? h("span", { class: "t", title: `${leaving} terminating` }, ` −${leaving}`) : null)),
    h("div", { class: "bar", role: "img", "aria-label": `${name}: ${ready} ready, ${unready} not ready, ${leaving} terminating` },
      part("ready", ready), part("unready", unready), part("leaving", leaving),
      rest > 0 ? h("i", { class: "rest", style: { "flex-grow": rest } }) : null));
}

function fills(row) {
  const shown = row.slices.slice(0, 5);
  const bars = shown.map((n) => h("span", { class: "fill", title: plural(n, "endpoint") },
    h("i", { style: { height: `${Math.min(100, Math.max(n > 0 ? 8 : 0, (n / SLICE_FULL) * 100))}%` } })));
  const note = row.sliceCount > shown.length ? `+${row.sliceCount - shown.length}` : String(row.sliceCount);
  return row.sliceCount === 0 ? [h("span", { class: "muted" }, "–")] : [...bars, h("span", { class: "more" }, note)];
}

const MARKS = {
  settled: ["M2 7.5 5.5 11 12 3.5", "none"],
  busy: ["M7 1.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11M7 4v3.4l2.2 1.6", "none"],
  failing: ["M7 1 13.5 12.5H.5ZM7 5v3.5M7 10.2v1", "none"],
};

/** The state of the key: settled, or why not. */
function stateCell(row) {
  const [kind, text] = stateOf(row);
  const [d, fill] = MARKS[kind];
  const mark = s("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" },
    s("path", { d, fill, stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round" }));
  return h("div", { role: "gridcell", class: `state ${kind}`, title: text }, mark, h("span", null, text));
}

function stateOf(row) {
  const waiting = waitingOf(row.key);
  if (waiting?.state === "backing_off" || waiting?.lastError) return ["failing", `backing off: ${waiting.lastError ?? waiting.lastResult ?? ""}`];
  if (waiting?.state === "in_flight") return ["busy", `in flight ${seconds(waiting.seconds)}`];
  if (waiting?.state === "waiting") return ["busy", "in the queue"];
  if (isRefused(row)) return [row.import.status === null ? "busy" : "failing", `not imported: ${importState(row.import)[1]}`];
  return ["settled", row.nExcluded > 0 ? `settled, ${row.nExcluded} left out` : "settled"];
}
