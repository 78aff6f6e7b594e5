// Starts the page, and shows the view that the address names.

import { start } from "./connection.js";
import { hideTip, replace } from "./dom.js";
import { header } from "./header.js";
import { overview } from "./overview.js";
import { playground } from "./playground.js";
import { serviceView } from "./service.js";
import { changesView } from "./changes.js";
import { waitingView } from "./waiting.js";

const main = document.getElementById("main");
let leave = () => {};

function route() {
  const [view, ...rest] = location.hash.replace(/^#\//, "").split("/").map(decoded);
  leave();
  hideTip();
  const views = { stream: changesView, waiting: waitingView };
  const shown = view === "service" && rest.length === 2
    ? serviceView(rest[0], rest[1])
    : (views[view] ?? overview)();
  leave = shown.leave ?? (() => {});
  replace(main, ...shown.elements);
  shown.entered?.();
  document.title = `${shown.title} · endpointd`;
  for (const link of document.querySelectorAll(".nav a")) {
    const isCurrent = link.dataset.view === (view in views ? view : "");
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Keys that work everywhere, unless somebody is typing. */
function onKey(event) {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isTyping) event.target.blur();
  if (isTyping) return;
  if (event.key === "/") {
    document.querySelector("main input[type=search]")?.focus();
    event.preventDefault();
  } else if (event.key === "Escape" && location.hash.startsWith("#/service/")) {
    location.hash = "#/";
  } else if (event.key === "1" || event.key === "2" || event.key === "3") {
    location.hash = ["#/", "#/stream", "#/waiting"][Number(event.key) - 1];
  }
}

header();
playground();
window.addEventListener("hashchange", () => {
  route();
  main.focus({ preventScroll: true });
});
window.addEventListener("keydown", onKey);
route();
start();
