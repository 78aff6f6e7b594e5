// The buttons of the playground. Elsewhere there are none.

import { command, h, replace } from "./dom.js";
import { getJson } from "./connection.js";
import { on, state } from "./store.js";

let actions = [];
/** Buttons whose next press undoes the last one, by action and Service. */
const pressed = new Set();

export function playground() {
  on("index", async () => {
    if (state.mode !== "playground" || actions.length > 0) return;
    const known = await getJson("/api/v1/playground");
    ({ actions } = known);
    for (const [action, service] of known.pressed) pressed.add(`${action} ${service ?? ""}`);
    const bar = document.getElementById("controls");
    const did = h("div", { class: "did", role: "status" });
    replace(bar, h("h2", null, "Make something happen"), actions.map((action) => button(action, null, did)), did);
    bar.hidden = false;
  });
}

/** Buttons for one Service, and the commands of kubectl that do the same. */
export function serviceActions(name) {
  const own = actions.filter((action) => action.hasService);
  if (own.length === 0) return null;
  const did = h("div", { class: "did", role: "status" });
  const commands = own.filter((action) => action.command).map((action) => command(action.command.replaceAll("{service}", name)));
  return h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", null, "Try it")),
    h("div", { class: "acts" }, own.map((action) => button(action, name, did)), did),
    h("details", null, h("summary", null, "The same with kubectl"), h("div", { class: "same" }, commands)));
}

function button(action, service, did) {
  const id = `${action.name} ${service ?? ""}`;
  const element = h("button", { class: "button", type: "button", title: action.description, "data-action": action.name });
  const show = () => {
    const isUndo = pressed.has(id);
    element.textContent = isUndo ? action.undoLabel : action.label;
    if (action.undoLabel) element.setAttribute("aria-pressed", String(isUndo));
  };
  element.addEventListener("click", async () => {
    element.disabled = true;
    try {
      const response = await fetch("/api/v1/playground", {
        method: "POST",
        headers: { "content-type": "application/json", "x-endpointd": "1" },
        body: JSON.stringify({ action: action.name, service }),
      });
      const value = await response.json();
      if (!response.ok) throw new Error(value.error);
      if (value.undoneNext) pressed.add(id); else pressed.delete(id);
      replace(did, h("span", null, `${value.caption}.`), value.commands.slice(0, 1).map(command));
    } catch (error) {
      replace(did, h("span", null, `Not possible: ${error.message}`));
    }
    element.disabled = false;
    show();
  });
  show();
  return element;
}
