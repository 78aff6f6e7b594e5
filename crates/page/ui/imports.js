// Services that ask for the endpoints of another one, and what came of it.

import { getJson } from "./connection.js";
import { h, replace } from "./dom.js";
import { importState, number, plural } from "./format.js";

/** All of them, read again with every status. */
export function importsCard() {
  const card = h("section", { class: "card wide imports", hidden: true });
  let isReading = false;
  const read = async () => {
    if (isReading) return;
    isReading = true;
    try {
      const { consumers, consumersNotShown } = await getJson("/api/v1/imports");
      card.hidden = consumers.length === 0;
      replace(card, h("h2", null, "Endpoints of other Services ", h("span", { class: "muted" }, number(consumers.length + consumersNotShown))),
        consumerList(consumers, true),
        consumersNotShown > 0 ? h("p", { class: "muted" }, `and ${plural(consumersNotShown, "Service")} more`) : null);
    } catch {
      // The next status tries again.
    }
    isReading = false;
  };
  return { root: card, read };
}

export function consumerList(consumers, hasSource = false) {
  return h("ul", { class: "slices" }, consumers.map(({ namespace, name, import: asked, endpoints, ready }) => {
    const [level, text] = importState(asked);
    const isComplete = asked.status === "True";
    const count = endpoints === 0 ? "no endpoints" : `${plural(endpoints, "endpoint")}, ${number(ready)} ready`;
    return h("li", null,
      h("div", { class: "line" }, h("b", null, serviceLink(`${namespace}/${name}`)),
        hasSource ? h("span", { class: "muted" }, "asks for ", sourceLink(asked.from)) : null,
        h("span", { class: `tag ${level}` }, text), h("span", { class: "muted" }, count)),
      // A state that is as it should be needs no reason.
      isComplete ? null : h("div", { class: "quiet" }, asked.message ?? "No controller has answered: endpointslice-import-controller may not run."));
  }));
}

function serviceLink(key) {
  return h("a", { href: `#/service/${key.split("/").map(encodeURIComponent).join("/")}` }, key);
}

/** An import of several clusters is no Service of this name. */
function sourceLink(from) {
  return /^[a-z0-9-]+\/[a-z0-9-]+$/.test(from) ? serviceLink(from) : from;
}
