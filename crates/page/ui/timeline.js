// The last changes of one Service: what happened, what was planned, what was written, and how long
// each step took.

import { h } from "./dom.js";
import { clock, controller, millis, plural } from "./format.js";
import { whatHappened } from "./changes.js";

export function timeline(changes) {
  if (changes.length === 0) {
    return h("p", { class: "quiet" }, "Nothing was written for this Service since this process leads.");
  }
  const longest = scale(changes.map((change) => change.waitedMs + change.tookMs));
  return h("ol", { class: "timeline" }, changes.map((change) => entry(change, longest)));
}

/** One very slow change must not make all others invisible. */
function scale(times) {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.max(1, Math.min(sorted.at(-1), sorted[Math.floor(sorted.length / 2)] * 5));
}

function entry(change, longest) {
  return h("li", null,
    h("time", { datetime: change.at, title: change.at }, clock(change.at)),
    h("div", { class: "happened" }, h("div", null, whatHappened(change)), h("div", { class: "steps" }, steps(change))),
    durations(change, longest));
}

function steps(change) {
  // The endpoints of a change are recorded only while somebody looks.
  if (change.writes.length === 0 && change.result === "written") return "Nobody looked, so its endpoints were not recorded.";
  const { creates, updates, deletes } = change.planned;
  const words = [[creates, "create"], [updates, "update"], [deletes, "delete"]]
    .filter(([n]) => n > 0).map(([n, word]) => plural(n, word));
  const plan = `${controller(change.controller)} planned ${words.join(", ") || "nothing"}`;
  const writes = change.writes.map((write) =>
    `${write.verb} ${write.name} ${write.result === "stored" || write.result === "deleted" ? "" : `(${write.result}) `}in ${millis(write.tookMs)}`);
  return [plan, ...writes.slice(0, 6), ...(writes.length > 6 ? [`${writes.length - 6} more writes`] : [])].join(" · ");
}

/** Waiting is dotted, writing is solid; the text has the numbers. */
function durations({ waitedMs, tookMs, background }, longest) {
  const share = (ms) => ({ width: `${Math.min(100, (ms / longest) * 100)}%` });
  const waited = background ? "initial sync" : `waited ${millis(waitedMs)}`;
  return h("div", { class: "durations" },
    h("span", null, `${waited}, wrote in `), h("span", { class: "total" }, millis(tookMs)),
    h("div", { class: "spans", "aria-hidden": "true" },
      h("i", { class: "waited", style: share(waitedMs) }), h("i", { class: "wrote", style: share(tookMs) })));
}
