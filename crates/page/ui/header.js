// The top bar, the figures below it, and the banner when something is not as it should be.

import { h, replace, setText } from "./dom.js";
import { millis, number, plural, seconds } from "./format.js";
import { on, state } from "./store.js";

const live = h("div", { class: "live", role: "status", "data-state": "waiting" },
  h("span", { class: "lamp", "aria-hidden": "true" }), h("span", { class: "text" }, "Connecting…"));
const count = h("span", { class: "count", hidden: true });
const mode = h("small");

export function header() {
  const link = (view, text, more) =>
    h("a", { href: `#/${view}`, "data-view": view }, text, more);
  replace(document.getElementById("top"),
    h("a", { class: "brand", href: "#/" }, h("img", { src: "icon.svg", alt: "" }), "endpointd", mode),
    h("nav", { class: "nav", "aria-label": "Views" },
      link("", "Services"), link("stream", "Stream"), link("waiting", "Waiting", count)),
    live);
  on("connection", connection);
  on("index", () => setText(mode, state.mode === "playground" ? "playground" : state.version));
  on("status", status);
  setInterval(connection, 1000);
}

function connection() {
  const { state: now, since } = state.connection;
  const isLive = now === "live";
  live.dataset.state = isLive ? "live" : "waiting";
  const age = Math.round((Date.now() - since) / 1000);
  const lost = state.nMessagesLost > 0 ? ` · ${plural(state.nMessagesLost, "message")} lost` : "";
  const text = isLive ? `Live${lost}` : `Reconnecting… ${age > 1 ? `${age} s` : ""}`;
  setText(live.querySelector(".text"), text.trim());
  banner();
}

/** One sentence, the most important one. */
function banner() {
  const element = document.getElementById("banner");
  const sentence = problem();
  element.hidden = sentence === null;
  if (sentence !== null) setText(element, sentence);
}

function problem() {
  const { connection, status } = state;
  if (connection.state === "waiting" && Date.now() - connection.since > 1500) {
    return "No connection to endpointd. What you see is from before; the page tries to reconnect.";
  }
  if (!status) return null;
  if (status.failure) return `This process stops: ${status.failure}.`;
  const { leadership } = status.process;
  if (leadership.state === "standby") {
    const who = leadership.holder ? `${leadership.holder} leads` : "nobody leads yet";
    return `This process is on standby: ${who} (Lease ${leadership.lease}). It shows what the leader publishes.`;
  }
  if (leadership.state === "dry_run") return "Dry run: this process plans and writes nothing.";
  const broken = status.watches.filter((watch) => watch.disconnectedReason);
  if (broken.length > 0) {
    const names = broken.map((watch) => watch.resource).join(", ");
    return `Disconnected from the API server: ${names}. What you see may be outdated. ${broken[0].disconnectedReason}`;
  }
  if (status.throttledForSeconds) return `Writes pause for ${seconds(status.throttledForSeconds)}: the API server asked for it or does not answer.`;
  return null;
}

function status() {
  const { status: it } = state;
  const sum = (field) => it.controllers.reduce((all, one) => all + one[field], 0);
  const nWaiting = sum("waiting");
  const nInFlight = sum("inFlight");
  const nBackingOff = sum("backingOff");
  const nConnected = it.watches.filter((watch) => watch.synced && !watch.disconnectedReason).length;
  const { latency, writesPerSecond } = it.rates;
  const { leadership } = it.process;
  const leader = {
    leading: "this process", no_election: "no election", dry_run: "dry run",
    standby: leadership.holder ?? "nobody",
  }[leadership.state];
  replace(document.getElementById("figures"),
    figure("Services", number(state.rows.size)),
    figure("Writes", writesPerSecond.toFixed(1), "per second"),
    figure("Change to slice", millis(latency.p50Ms), `p99 ${millis(latency.p99Ms)}`),
    figure("Queue", number(nWaiting), `${nInFlight} in flight`),
    figure("Backing off", number(nBackingOff), "", nBackingOff > 0 ? "bad" : ""),
    figure("Watches", `${nConnected}/${it.watches.length}`, "", nConnected < it.watches.length ? "warn" : ""),
    ...clusters(it.clusters ?? []),
    figure("Leader", leader, "", "", "word"));
  const nHeld = nBackingOff + (it.deletionLimiter?.delayedKeys ?? 0);
  count.hidden = nHeld === 0;
  setText(count, String(nHeld));
  banner();
}

/** How many of the other clusters are in sync, if there are some. */
function clusters(all) {
  if (all.length === 0) return [];
  const nInSync = all.filter((one) => one.state === "InSync" && !one.denied).length;
  return [figure("Clusters", `${nInSync}/${all.length}`, "in sync", nInSync < all.length ? "warn" : "")];
}

function figure(name, value, note = "", level = "", kind = "") {
  return h("dl", { class: `figure ${level}` },
    h("dt", null, name), h("dd", { class: kind }, value, note ? h("small", null, ` ${note}`) : null));
}
