// What waits, what is in flight, what backs off and why, what the deletion limiter holds, which
// Services have the endpoints of others, and the states of other clusters.

import { h, replace } from "./dom.js";
import { controller, number, plural, seconds } from "./format.js";
import { clustersCard } from "./clusters.js";
import { importsCard } from "./imports.js";
import { on, state } from "./store.js";

export function waitingView() {
  const cards = h("div", { class: "cards" });
  const imports = importsCard();
  const draw = () => {
    replace(cards, state.status ? content(state.status, imports.root) : [h("p", { class: "empty" }, "Waiting for the first status…")]);
    imports.read();
  };
  draw();
  return {
    title: "Waiting",
    elements: [h("div", { class: "scrolls" }, cards)],
    leave: on("status", draw),
  };
}

function content(status, imports) {
  const of = (name) => status.keys.filter((key) => key.state === name);
  const backingOff = status.keys.filter((key) => key.state === "backing_off" || (key.lastError && key.state !== "in_flight"));
  const waiting = of("waiting").filter((key) => !key.lastError);
  return [
    card("Backs off", backingOff, "No key has failed. A key whose write fails is tried again after a pause.",
      ["Service", "Controller", "Again in", "Why"],
      (key) => [link(key), controller(key.controller), key.seconds === null ? "–" : seconds(key.seconds), `${key.lastError ?? key.lastResult ?? "–"} (${plural(key.failures, "failure")})`], true),
    clustersCard(status),
    card("In flight", of("in_flight"), "No request is in flight.",
      ["Service", "Controller", "Since"], (key) => [link(key), controller(key.controller), seconds(key.seconds)]),
    card("In the queue", waiting, "The queue is empty.",
      ["Service", "Controller", "Since"], (key) => [link(key), controller(key.controller), seconds(key.seconds)]),
    limiter(status),
    imports,
    controllers(status),
    watches(status),
  ];
}

function card(title, keys, none, heads, cells, isWide = false) {
  return h("section", { class: `card${isWide ? " wide" : ""}` },
    h("h2", null, title, keys.length > 0 ? h("span", { class: "muted" }, ` ${keys.length}`) : null),
    keys.length === 0 ? h("p", { class: "quiet" }, none) : table(heads, keys.map(cells)));
}

function table(heads, rows, numbersFrom = heads.length) {
  const kind = (index) => (index >= numbersFrom ? "number" : "");
  return h("table", { class: "table" },
    h("thead", null, h("tr", null, heads.map((head, index) => h("th", { scope: "col", class: kind(index) }, head)))),
    h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell, index) => h("td", { class: kind(index) }, cell))))));
}

function link(key) {
  const [namespace, name] = key.key.split("/");
  return h("a", { href: `#/service/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}` }, key.key);
}

function limiter({ deletionLimiter: it, throttledForSeconds }) {
  const sentence = it.active
    ? `Holds ${plural(it.delayedKeys, "key")}: ${number(it.deletionsLastMinute)} deletions of missing objects in the last minute, ${number(it.deletionsPerMinuteLimit)} are allowed.`
    : `Holds nothing. ${number(it.deletionsLastMinute)} of ${number(it.deletionsPerMinuteLimit)} allowed deletions of missing objects in the last minute.`;
  const pause = throttledForSeconds
    ? `No write is sent for ${seconds(throttledForSeconds)}: the API server asked for a pause, or does not answer.` : "Writes are not paused.";
  return h("section", { class: "card" }, h("h2", null, "Held back"), h("p", { class: "quiet" }, sentence), h("p", { class: "quiet" }, pause));
}

function controllers(status) {
  const rows = status.controllers.map((one) => [
    one.controller, number(one.adds), number(one.retries),
    one.waitsFor.length > 0 ? `waits for ${one.waitsFor.join(", ")}` : oldest(one),
  ]);
  return h("section", { class: "card wide" }, h("h2", null, "Controllers"), table(["Controller", "Enqueued", "Failed", "Now"], rows));
}

function oldest({ oldestWaitSeconds, oldestInFlightSeconds }) {
  const age = Math.max(oldestWaitSeconds, oldestInFlightSeconds);
  return age > 0 ? `works, oldest since ${seconds(age)}` : "idle";
}

function watches(status) {
  const rows = status.watches.map((watch) => [
    watch.resource,
    watch.disconnectedReason ? h("span", { class: "tag bad" }, watch.disconnectedReason) : watch.synced ? h("span", { class: "tag good" }, "connected") : h("span", { class: "tag warn" }, "listing"),
    number(watch.objects),
    Object.keys(watch.decodeErrors).length > 0 ? h("span", { class: "tag bad" }, plural(Object.keys(watch.decodeErrors).length, "unreadable object")) : "–",
  ]);
  return h("section", { class: "card wide" }, h("h2", null, "Watches"), table(["Resource", "Connection", "Objects", "Cannot be read"], rows));
}
