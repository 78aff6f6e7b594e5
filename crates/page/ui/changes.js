// The stream of changes as they happen, the newest first.

import { h, replace, setText } from "./dom.js";
import { clock, controller, endpointPairs, millis, number, plural, RESULTS } from "./format.js";
import { on, state } from "./store.js";

const SHOWN_MAX = 300;
const PAIRS_MAX = 6;
const memory = { filter: "", hasEndpoints: false };

export function changesView() {
  let isPaused = false;
  let nMissed = 0;
  const filter = h("input", {
    class: "field", type: "search", placeholder: "Filter by name, pod, slice, or result", "aria-label": "Filter changes",
    value: memory.filter, autocomplete: "off", spellcheck: "false",
    on: { input: () => { memory.filter = filter.value; draw(); } },
  });
  const pause = h("button", { class: "button", type: "button", "aria-pressed": "false", on: { click: toggle } }, "Pause");
  const both = h("input", { type: "checkbox", checked: memory.hasEndpoints, on: { change: () => { memory.hasEndpoints = both.checked; draw(); } } });
  const note = h("span", { class: "note", role: "status" });
  const list = h("ol", { class: "stream", "aria-label": "Changes, the newest first" });
  const empty = h("p", { class: "empty" });

  function toggle() {
    isPaused = !isPaused;
    nMissed = 0;
    pause.setAttribute("aria-pressed", String(isPaused));
    setText(pause, isPaused ? "Continue" : "Pause");
    draw();
  }

  function draw() {
    const words = memory.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const isShown = (change) => memory.hasEndpoints || change.controller !== "endpoints-controller" || change.result !== "written";
    const found = state.changes.filter((change) => isShown(change) && words.every((word) => textOf(change).includes(word)));
    replace(list, found.slice(0, SHOWN_MAX).map(entry));
    list.hidden = found.length === 0;
    empty.hidden = found.length > 0;
    setText(empty, state.changes.length === 0
      ? "Nothing was written yet. Changes appear here as they happen." : "No change matches the filter.");
    setNote(found.length);
  }

  function setNote(nFound) {
    const lost = state.nChangesLost > 0 ? ` · ${number(state.nChangesLost)} not shown, too many at once` : "";
    setText(note, isPaused ? `Paused · ${plural(nMissed, "new change")}` : `${plural(nFound, "change")}${lost}`);
  }

  const onKey = (event) => {
    if (event.key === "p" && event.target.tagName !== "INPUT" && !event.ctrlKey && !event.metaKey) toggle();
  };
  window.addEventListener("keydown", onKey);
  const stop = on("changes", (changes) => {
    if (!isPaused) return draw();
    nMissed += changes.length;
    setNote(0);
  });
  draw();
  return {
    title: "Stream",
    elements: [h("div", { class: "tools" }, filter, pause, h("label", { class: "check" }, both, "Endpoints objects, too"), note), h("div", { class: "scrolls" }, list, empty)],
    leave: () => { stop(); window.removeEventListener("keydown", onKey); },
  };
}

/** What the filter searches, computed once per change. */
function textOf(change) {
  change.search ??= [`${change.namespace}/${change.name}`, change.result, change.error ?? "", controller(change.controller),
    ...change.writes.flatMap((write) => [write.name, write.verb, ...write.endpoints.map((one) => `${one.name} ${one.after ?? ""}`)])]
    .join(" ").toLowerCase();
  return change.search;
}

function entry(change) {
  const href = `#/service/${encodeURIComponent(change.namespace)}/${encodeURIComponent(change.name)}`;
  return h("li", null,
    h("time", { datetime: change.at }, clock(change.at)),
    h("a", { class: "key", href }, `${change.namespace}/${change.name}`),
    h("span", { class: "what" }, whatHappened(change)),
    h("span", { class: "took" }, millis(change.waitedMs + change.tookMs)));
}

/** `−web-2 · ~web-3 not ready → web-d569`. */
export function whatHappened(change) {
  const parts = [];
  if (change.result !== "written" && change.result !== "unchanged") {
    parts.push(h("span", { class: "pair" }, h("span", { class: "sign failed" }, "! "), `${RESULTS[change.result] ?? change.result}${change.error ? `: ${change.error}` : ""}`));
  }
  const pairs = endpointPairs(change);
  const bySlice = new Map();
  for (const pair of pairs) bySlice.set(pair.slice, [...(bySlice.get(pair.slice) ?? []), pair]);
  for (const [slice, all] of bySlice) {
    const write = change.writes.find((one) => one.name === slice);
    const nMore = Math.max(0, all.length - PAIRS_MAX) + (write?.endpointsNotShown ?? 0);
    parts.push(h("span", null,
      all.slice(0, PAIRS_MAX).map((pair) => h("span", { class: "pair" },
        h("span", { class: `sign ${pair.kind}` }, `${pair.sign} `), h("b", null, pair.name), pair.text ? ` ${pair.text}` : "")),
      nMore > 0 ? h("span", { class: "pair" }, `and ${nMore} more`) : null,
      h("span", { class: "to" }, `→ ${slice}`)));
  }
  if (pairs.length === 0) parts.push(h("span", null, planned(change)));
  return parts;
}

/** `Endpoints: 1 update`, for writes without endpoints of slices. */
export function planned(change) {
  const { creates, updates, deletes } = change.planned;
  const words = [[creates, "create"], [updates, "update"], [deletes, "delete"]]
    .filter(([n]) => n > 0).map(([n, word]) => plural(n, word));
  return `${controller(change.controller)}: ${words.join(", ") || "nothing to write"}`;
}
