// One Service: its diagram, findings, excluded pods, slices, and timeline.

import { getJson } from "./connection.js";
import { command, h, icon, legend, replace, setText } from "./dom.js";
import { controller, importState, number, plural, reason, seconds, yaml } from "./format.js";
import { diagram } from "./diagram.js";
import { serviceActions } from "./playground.js";
import { on } from "./store.js";
import { timeline } from "./timeline.js";
import { serviceClustersCard } from "./clusters.js";
import { consumerList } from "./imports.js";

/** Between two reads of the same Service, while it changes. */
const REFRESH = 500;
/** Findings cost the API server several requests. */
const FINDINGS_REFRESH = 3000;
const ENDPOINTS_MAX = 500;
const OWN_WRITERS = /^(endpointslice(mirroring)?-controller\.k8s\.io|endpointd-mirror|endpointd-import)$/;

export function serviceView(namespace, name) {
  const view = new ServiceView(namespace, name);
  return { title: `${namespace}/${name}`, elements: [view.root], entered: () => view.refresh(), leave: () => view.leave() };
}

class ServiceView {
  constructor(namespace, name) {
    Object.assign(this, { namespace, name, key: `${namespace}/${name}`, isLeft: false });
    this.path = `/api/v1/services/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    this.verdict = h("p", { class: "verdict", role: "status" }, "Reading the findings…");
    this.facts = h("div", { class: "facts" });
    this.diagram = diagram();
    this.findings = h("div", null, h("p", { class: "quiet" }, "Reading the findings…"));
    this.excluded = h("section", { class: "card", hidden: true });
    this.consumers = h("section", { class: "card", hidden: true });
    this.clusters = serviceClustersCard();
    this.slices = h("section", { class: "card" });
    this.endpoints = h("tbody");
    this.endpointCount = h("summary", null, "Endpoints as a table");
    this.timeline = h("div", null, h("p", { class: "quiet" }, "Loading…"));
    this.actions = h("div", null);
    this.root = h("div", { class: "scrolls" },
      h("p", { class: "crumb" }, h("a", { href: "#/" }, "Services"), ` / ${namespace}`),
      h("div", { class: "heading" }, h("h1", null, h("span", null, `${namespace}/`), name)),
      this.verdict, this.facts,
      h("div", { class: "detail" },
        h("div", { class: "lead" },
          h("section", { class: "card" },
            h("div", { class: "head" }, h("h2", null, "Where traffic can go"), legend()),
            this.diagram.root, this.endpointTable()),
          h("section", { class: "card" }, h("div", { class: "head" }, h("h2", null, "Timeline"), h("span", { class: "muted" }, "last 100 changes")), this.timeline)),
        h("div", { class: "side" },
          h("section", { class: "card" }, h("div", { class: "head" }, h("h2", null, "Findings")), this.findings),
          this.clusters.root, this.excluded, this.consumers, this.actions, this.slices)));
    this.stops = [
      on("rows", ({ all, keys }) => { if (all || keys.has(this.key)) this.later(); }),
      on("changes", (changes) => { if (changes.some((one) => `${one.namespace}/${one.name}` === this.key)) this.later(); }),
      on("index", () => this.showActions()),
      on("status", () => { if (this.detail) this.clusters.show(this.detail.slices); }),
    ];
    this.showActions();
  }

  leave() {
    this.isLeft = true;
    this.stops.forEach((stop) => stop());
    clearTimeout(this.timer);
    clearTimeout(this.findingsTimer);
    this.diagram.leave();
  }

  showActions() {
    if (this.actions.childElementCount > 0) return;
    const card = serviceActions(this.name);
    if (card) replace(this.actions, card);
    else if (!this.isLeft) setTimeout(() => { if (!this.isLeft && this.actions.childElementCount === 0) replace(this.actions, serviceActions(this.name) ?? []); }, 800);
  }

  later() {
    this.timer ??= setTimeout(() => { this.timer = null; this.refresh(); }, REFRESH);
  }

  async refresh() {
    this.findingsLater();
    try {
      const detail = await getJson(this.path);
      if (!this.isLeft) this.show(detail);
    } catch (error) {
      if (!this.isLeft) replace(this.facts, h("span", { class: "tag warn" }, error.message));
    }
  }

  /** At once the first time, later while the Service changes. */
  findingsLater() {
    if (this.findingsTimer) return;
    const wait = this.findingsAt ? Math.max(0, this.findingsAt + FINDINGS_REFRESH - Date.now()) : 0;
    this.findingsTimer = setTimeout(async () => {
      this.findingsAt = Date.now();
      try {
        const found = await getJson(`${this.path}/findings`);
        if (!this.isLeft) this.showFindings(found);
      } catch (error) {
        if (!this.isLeft) this.noFindings(error.message);
      }
      this.findingsTimer = null;
    }, wait);
  }

  show(detail) {
    replace(this.facts, facts(detail).map(([text, level]) => h("span", { class: `tag ${level ?? ""}` }, text)));
    this.detail = detail;
    this.diagram.show(detail);
    this.clusters.show(detail.slices);
    const name = detail.slices.find((slice) => slice.import)?.import;
    replace(this.timeline, detail.changes.length === 0 && name
      ? h("p", { class: "quiet" }, "Its slices are written for the import: ", h("a", { href: `#/service/${[this.namespace, name].map(encodeURIComponent).join("/")}` }, `${this.namespace}/${name}`))
      : timeline(detail.changes));
    this.showExcluded(detail);
    this.showConsumers(detail);
    this.showSlices(detail);
    const all = detail.slices.flatMap((slice) => slice.endpoints.map((endpoint) => ({ ...endpoint, slice: slice.name })));
    setText(this.endpointCount, `${plural(all.length, "endpoint")} as a table`);
    replace(this.endpoints, all.slice(0, ENDPOINTS_MAX).map((one) => h("tr", null,
      [one.pod ?? "–", one.condition, one.addresses.join(", "), one.zone ?? "–", one.node ?? "–", (one.forZones ?? []).join(", ") || "–"].map((text) => h("td", null, text)))));
  }

  endpointTable() {
    return h("details", null, this.endpointCount,
      h("table", { class: "table" }, h("thead", null, h("tr", null,
        ["Pod", "Condition", "Addresses", "Zone", "Node", "For clients in"].map((text) => h("th", { scope: "col" }, text)))), this.endpoints));
  }

  showExcluded({ excludedPods }) {
    const bySlices = excludedPods.filter((one) => one.controller !== "endpoints-controller");
    this.excluded.hidden = bySlices.length === 0;
    replace(this.excluded,
      h("div", { class: "head" }, h("h2", null, "Left out of slices"), h("span", { class: "muted" }, plural(bySlices.length, "pod"))),
      h("table", { class: "table" }, h("tbody", null, bySlices.slice(0, 100).map((one) =>
        h("tr", null, h("td", null, one.pod), h("td", null, reason(one.reason)))))));
  }

  /** Who asks for the endpoints of this Service. */
  showConsumers({ consumers }) {
    this.consumers.hidden = consumers.length === 0;
    replace(this.consumers,
      h("div", { class: "head" }, h("h2", null, "Also published by"), h("span", { class: "muted" }, plural(consumers.length, "Service"))),
      consumerList(consumers.slice(0, 50)));
  }

  /** Opened YAML stays open, and is read when it is opened. */
  showSlices({ slices }) {
    const names = slices.map((slice) => `${slice.name} ${slice.endpoints.length}`).join();
    if (this.sliceNames === names) return;
    this.sliceNames = names;
    const open = new Set([...this.slices.querySelectorAll("details[open]")].map((one) => one.dataset.slice));
    const entries = slices.map((slice) => h("li", null,
      h("div", { class: "line" }, h("b", null, slice.name), h("span", { class: "muted" },
        `${slice.addressType} · ${plural(slice.endpoints.length, "endpoint")}${slice.ports.length > 0 ? ` · ${slice.ports.map((port) => `${port.port ?? "all ports"}/${port.protocol ?? "TCP"}`).join(", ")}` : ""}`)),
      this.yamlOf(slice, open.has(slice.name))));
    replace(this.slices,
      h("div", { class: "head" }, h("h2", null, "Slices"), h("span", { class: "muted" }, number(slices.length))),
      slices.length === 0 ? h("p", { class: "quiet" }, "This Service has no slices.") : h("ul", { class: "slices" }, entries));
  }

  yamlOf(slice, isOpen) {
    const text = h("pre", { class: "yaml", tabindex: "0", "aria-label": `YAML of ${slice.name}` }, "Loading…");
    const read = async () => {
      try {
        const object = await getJson(`/api/v1/slices/${encodeURIComponent(this.namespace)}/${encodeURIComponent(slice.name)}`);
        setText(text, yaml(object).trimStart());
      } catch (error) {
        setText(text, error.message);
      }
    };
    if (isOpen) read();
    return h("details", { "data-slice": slice.name, open: isOpen, on: { toggle: (event) => { if (event.target.open && text.textContent === "Loading…") read(); } } },
      h("summary", null, "YAML"), text);
  }

  showFindings({ verdict, findings, notRead }) {
    setText(this.verdict, verdict);
    const entries = findings.map((finding) => h("li", { "data-code": finding.code }, icon(finding.code === "EPD900" ? "good" : finding.level),
      h("div", null,
        h("div", { class: "about" }, h("span", null, `${finding.object.kind} ${finding.object.name}`), h("span", null, finding.code)),
        h("div", { class: "message" }, finding.message),
        finding.nearMiss ? h("div", { class: "hint-text" }, finding.nearMiss) : null,
        finding.try ? command(finding.try) : null)));
    replace(this.findings,
      entries.length > 0 ? h("ul", { class: "findings" }, entries.slice(0, 50)) : h("p", { class: "quiet" }, "Nothing stands out."),
      entries.length > 50 ? h("p", { class: "muted" }, `and ${entries.length - 50} more`) : null,
      notRead?.length > 0 ? h("p", { class: "muted" }, `Not read: ${notRead.join("; ")}`) : null);
  }

  noFindings(message) {
    if (this.verdict.textContent.startsWith("Reading")) setText(this.verdict, "The findings could not be read.");
    replace(this.findings, h("p", { class: "quiet" }, message), command(`endpointd explain svc/${this.name} -n ${this.namespace}`));
  }
}

function facts({ service, slices, keys, plannedWrites }) {
  const selector = Object.entries(service.selector).map(([key, value]) => `${key}=${value}`).join(", ");
  const all = [[service.externalName ? "ExternalName" : selector ? `selector ${selector}` : "no selector"]];
  if (service.import) {
    const [level, text] = importState(service.import);
    all.push([`endpoints of ${service.import.from}: ${text}`, level]);
  }
  if (service.endpointsTo) all.push([`consent for ${service.endpointsTo === "*" ? "all namespaces" : service.endpointsTo}`]);
  if (service.headless) all.push(["headless"]);
  if (service.families.length > 0) all.push([service.families.join(" + ")]);
  for (const port of service.ports) all.push([`${port.name ? `${port.name} ` : ""}${port.port} → ${port.targetPort} ${port.protocol}`]);
  if (service.topologyMode) all.push([`topology mode ${service.topologyMode}`]);
  if (service.trafficDistribution) all.push([service.trafficDistribution]);
  if (service.publishNotReady) all.push(["publishes pods that are not ready"]);
  if (service.deleting) all.push(["being deleted", "warn"]);
  const foreign = slices.filter((slice) => !OWN_WRITERS.test(slice.managedBy ?? ""));
  if (foreign.length > 0) all.push([`${plural(foreign.length, "slice")} of another writer`, "warn"]);
  const failing = keys.filter((key) => key.lastError);
  for (const key of failing) all.push([`${controller(key.controller)}: ${key.lastError}`, "bad"]);
  for (const key of keys.filter((one) => one.state !== "idle" && !one.lastError)) {
    all.push([`${controller(key.controller)}: ${key.state.replace("_", " ")} ${seconds(key.seconds ?? 0)}`]);
  }
  const nPlanned = Object.values(plannedWrites).reduce((sum, n) => sum + n, 0);
  all.push(nPlanned === 0 && failing.length === 0 ? ["published as it should be", "good"] : [`${plural(nPlanned, "write")} to come`, "warn"]);
  return all;
}
