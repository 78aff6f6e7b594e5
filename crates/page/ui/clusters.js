// The other clusters whose exported Services are imported, and what one Service has of each.

import { h, replace } from "./dom.js";
import { number, plural, seconds } from "./format.js";
import { state } from "./store.js";

const LEVELS = { InSync: "good", Unknown: "warn", Lost: "warn", Demoted: "bad", Expired: "bad", Removed: "bad" };
const MEANINGS = {
  InSync: "", Unknown: "not listed yet", Lost: "does not answer, its endpoints stay",
  Demoted: "does not answer, its endpoints are not ready where others have enough",
  Expired: "has not answered for too long, its endpoints are deleted", Removed: "no longer configured",
};

/** Those of the last status, none if Services are not imported. */
export const sourceClusters = () => state.status?.clusters ?? [];

export function clusterTag({ state: name, denied }) {
  return h("span", { class: `tag ${denied ? "bad" : LEVELS[name] ?? "warn"}` }, denied ? `${name}, denied` : name);
}

/** What is said of all of them, for the view of what waits. */
export function clustersCard(status) {
  const clusters = status.clusters ?? [];
  if (clusters.length === 0) return null;
  const rows = clusters.map((one) => h("tr", null,
    [one.cluster, clusterTag(one), MEANINGS[one.state] ?? "", contact(one), number(one.exports), number(one.slices)].map((cell, index) =>
      h("td", { class: index > 3 ? "number" : "" }, cell))));
  return h("section", { class: "card wide clusters" },
    h("h2", null, "Other clusters", h("span", { class: "muted" }, ` ${clusters.length}`)),
    h("table", { class: "table" },
      h("thead", null, h("tr", null, ["Cluster", "State", "", "Last contact", "Exports", "Slices"].map((head, index) => h("th", { scope: "col", class: index > 3 ? "number" : "" }, head)))),
      h("tbody", null, rows)));
}

const contact = ({ lastContactAgeSeconds: age }) => (age === null ? "never" : `${seconds(age)} ago`);

/** The endpoints of one Service by cluster; hidden if all are of this one. */
export function serviceClustersCard() {
  const card = h("section", { class: "card clusters", hidden: true });
  const show = (slices) => {
    const found = new Map();
    for (const slice of slices.filter((one) => one.cluster)) {
      const one = found.get(slice.cluster) ?? { slices: 0, endpoints: 0, ready: 0 };
      one.slices += 1;
      one.endpoints += slice.endpoints.length;
      one.ready += slice.endpoints.filter((endpoint) => endpoint.condition === "ready").length;
      found.set(slice.cluster, one);
    }
    card.hidden = found.size === 0;
    const known = new Map(sourceClusters().map((one) => [one.cluster, one]));
    const entries = [...found].sort(([a], [b]) => a.localeCompare(b)).map(([name, one]) => h("li", null,
      h("div", { class: "line" }, h("b", null, name),
        known.has(name) ? clusterTag(known.get(name)) : h("span", { class: "tag" }, "this cluster"),
        h("span", { class: "muted" }, `${plural(one.endpoints, "endpoint")}, ${number(one.ready)} ready, in ${plural(one.slices, "slice")}`)),
      known.has(name) && known.get(name).state !== "InSync"
        ? h("div", { class: "quiet" }, `${MEANINGS[known.get(name).state] ?? ""}; last contact ${contact(known.get(name))}`) : null));
    replace(card, h("div", { class: "head" }, h("h2", null, "Clusters"), h("span", { class: "muted" }, number(found.size))),
      h("ul", { class: "slices" }, entries));
  };
  return { root: card, show };
}
