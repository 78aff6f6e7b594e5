// The diagram of one Service: the Service, its slices, and its endpoints in a column per zone,
// or per cluster if they are those of several. The
// shape and the colour of an endpoint say its condition; arrows say where traffic from a zone goes.

import { dot, h, hideTip, replace, s, showTip } from "./dom.js";
import { number, plural } from "./format.js";

const DOTS_MAX = 400;
const SLICES_DRAWN_MAX = 12;
const SLICE_FULL = 100;

export function diagram() {
  const root = h("div", { class: "diagram" });
  let detail = null;
  let width = 0;
  const draw = () => { if (detail && width > 0) replace(root, drawing(detail, width)); };
  const observer = new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now !== width) { width = now; draw(); }
  });
  observer.observe(root);
  return {
    root,
    show: (value) => {
      // A redraw would take the focus and the tooltip away.
      if (root.contains(document.activeElement) && detail && same(detail, value)) return;
      detail = value;
      draw();
    },
    leave: () => observer.disconnect(),
  };
}

const same = (a, b) => JSON.stringify(a.slices) === JSON.stringify(b.slices);

function drawing(detail, width) {
  const slices = detail.slices.slice(0, SLICES_DRAWN_MAX);
  const zones = zonesOf(detail.slices);
  const perRow = Math.max(1, Math.min(slices.length, Math.floor(width / 132)));
  const nRows = Math.ceil(slices.length / perRow);
  const top = { y: 4, height: 44 };
  const sliceTop = top.y + top.height + 38;
  const sliceHeight = 50;
  const zoneTop = sliceTop + nRows * (sliceHeight + 10) + (nRows > 0 ? 28 : -6);
  const layout = zones.map((zone, index) => column(zone, index, zones.length, width, zoneTop));
  const tallest = Math.max(0, ...layout.map((one) => one.height));
  const hintRows = hints(zones);
  const bottom = zoneTop + tallest + (hintRows.length > 0 ? 96 : 0);
  const places = slices.map((slice, index) => place(index, perRow, slices.length, width, sliceTop, sliceHeight));
  return s("svg", { viewBox: `0 0 ${width} ${bottom + 4}`, role: "group", "aria-label": summary(detail, zones) },
    links(width, top, places, slices, layout, zoneTop),
    serviceBox(detail, width, top),
    slices.map((slice, index) => sliceBox(slice, places[index], detail.name)),
    detail.slices.length > slices.length
      ? s("text", { class: "sub", x: width, y: zoneTop - 10, "text-anchor": "end", "font-size": 12 }, `and ${detail.slices.length - slices.length} more slices`) : null,
    layout.map((one) => zoneColumn(one, tallest)),
    hintRows.length > 0 ? hintArrows(hintRows, layout, zoneTop + tallest) : null);
}

function summary(detail, zones) {
  return `${detail.name}: ${plural(detail.slices.length, "slice")}, ${zones.map((zone) => `${zone.name || "no zone"} ${plural(zone.endpoints.length, "endpoint")}`).join(", ")}`;
}

function zonesOf(slices) {
  const zones = new Map();
  for (const slice of slices) {
    for (const endpoint of slice.endpoints) {
      const name = slice.cluster ?? endpoint.zone ?? "";
      if (!zones.has(name)) zones.set(name, { name, endpoints: [] });
      // Hints are for zones: between clusters there is nothing to draw.
      const forZones = slice.cluster ? null : endpoint.forZones;
      zones.get(name).endpoints.push({ ...endpoint, forZones, slice: slice.name });
    }
  }
  const sorted = [...zones.values()].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  for (const zone of sorted) zone.endpoints.sort((a, b) => nameOf(a).localeCompare(nameOf(b), "en", { numeric: true }));
  return sorted;
}

const nameOf = (endpoint) => endpoint.pod ?? endpoint.addresses[0] ?? "";

function place(index, perRow, n, width, top, height) {
  const row = Math.floor(index / perRow);
  const inRow = Math.min(perRow, n - row * perRow);
  const boxWidth = Math.min(190, (width - (perRow - 1) * 12) / perRow);
  const left = (width - inRow * boxWidth - (inRow - 1) * 12) / 2;
  return { x: left + (index - row * perRow) * (boxWidth + 12), y: top + row * (height + 10), width: boxWidth, height };
}

function column(zone, index, n, width, y) {
  const gap = width < 500 ? 8 : 16;
  const columnWidth = (width - (n - 1) * gap) / n;
  const pitch = zone.endpoints.length > 120 ? 13 : zone.endpoints.length > 40 ? 17 : zone.endpoints.length > 12 ? 22 : 26;
  const perRow = Math.max(1, Math.floor((columnWidth - 24) / pitch));
  const shown = zone.endpoints.slice(0, DOTS_MAX);
  const nRows = Math.max(1, Math.ceil(shown.length / perRow));
  const more = zone.endpoints.length - shown.length;
  return { zone, shown, more, x: index * (columnWidth + gap), y, width: columnWidth, pitch, perRow, height: 52 + nRows * pitch + (more > 0 ? 18 : 0) + 4 };
}

function serviceBox(detail, width, { y, height }) {
  const boxWidth = Math.min(300, width - 8);
  const ports = detail.service.ports.map((port) => `${port.port}${port.targetPort !== port.port ? `→${port.targetPort}` : ""}`).join(", ");
  return s("g", null,
    s("rect", { class: "service-box", x: (width - boxWidth) / 2, y, width: boxWidth, height, rx: 10 }),
    s("text", { x: width / 2, y: y + 19, "text-anchor": "middle", "font-size": 14, "font-weight": 620 }, cut(detail.name, Math.floor(boxWidth / 8.5))),
    s("text", { class: "sub", x: width / 2, y: y + 35, "text-anchor": "middle", "font-size": 12 }, ports ? cut(`port ${ports}`, 40) : "no ports"));
}

const cut = (text, max) => (text.length > max ? `${text.slice(0, Math.max(1, max - 1))}…` : text);

function sliceBox(slice, { x, y, width, height }, service) {
  const n = slice.endpoints.length;
  const fill = Math.min(1, n / SLICE_FULL);
  const name = slice.name.startsWith(`${service}-`) ? `…-${slice.name.slice(service.length + 1)}` : slice.name;
  const mark = (isMarked) => (event) => {
    const svg = event.currentTarget.ownerSVGElement;
    for (const element of svg.querySelectorAll(".dot")) element.classList.toggle("dim", isMarked && element.dataset.slice !== slice.name);
    if (isMarked) showTip([slice.name, `${slice.addressType}, ${plural(n, "endpoint")} of ${SLICE_FULL}`, portText(slice)], event.currentTarget.getBoundingClientRect());
    else hideTip();
  };
  return s("g", { class: "slice", tabindex: 0, role: "img", "aria-label": `slice ${slice.name}, ${slice.addressType}, ${plural(n, "endpoint")}`,
      on: { mouseenter: mark(true), mouseleave: mark(false), focus: mark(true), blur: mark(false) } },
    s("rect", { class: "box", x, y, width, height, rx: 8 }),
    s("text", { x: x + 10, y: y + 19, "font-size": 12.5, "font-weight": 560 }, cut(name, Math.floor((width - 18) / 7.2))),
    s("text", { class: "sub", x: x + 10, y: y + 34, "font-size": 11 }, `${slice.addressType} · ${n}`),
    s("rect", { class: "track", x: x + 10, y: y + 40, width: width - 20, height: 4, rx: 2 }),
    s("rect", { class: "level", x: x + 10, y: y + 40, width: (width - 20) * fill, height: 4, rx: 2 }));
}

function portText(slice) {
  return slice.ports.length === 0 ? "no ports" : slice.ports.map((port) => `${port.port}/${port.protocol ?? "TCP"}`).join(", ");
}

function links(width, top, places, slices, layout, zoneTop) {
  const curve = (x1, y1, x2, y2, weight) =>
    s("path", { class: "link", d: `M${x1} ${y1}C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`, "stroke-width": weight });
  const drawn = places.map((box) => curve(width / 2, top.y + top.height, box.x + box.width / 2, box.y, 1.5));
  places.forEach((box, index) => {
    for (const one of layout) {
      const n = one.zone.endpoints.filter((endpoint) => endpoint.slice === slices[index].name).length;
      if (n > 0) drawn.push(curve(box.x + box.width / 2, box.y + box.height, one.x + one.width / 2, zoneTop, Math.min(5, 1 + Math.log2(n) / 2)));
    }
  });
  return s("g", { "aria-hidden": "true" }, drawn);
}

function zoneColumn(one, tallest) {
  const { zone, shown, more, x, y, width, pitch, perRow } = one;
  const count = (condition) => zone.endpoints.filter((endpoint) => endpoint.condition === condition).length;
  const nReady = count("ready");
  const nUnready = count("not ready");
  const words = [`${number(nReady)} ready`, nUnready > 0 ? `${nUnready} not` : "", zone.endpoints.length > nReady + nUnready ? `${zone.endpoints.length - nReady - nUnready} leaving` : ""].filter(Boolean);
  const left = x + 12 + pitch / 2;
  const dots = shown.map((endpoint, index) => {
    const element = dot(endpoint.condition, left + (index % perRow) * pitch, y + 52 + Math.floor(index / perRow) * pitch, pitch * 0.34);
    element.dataset.slice = endpoint.slice;
    element.addEventListener("mouseenter", () => showTip(lines(endpoint), element.getBoundingClientRect()));
    element.addEventListener("mouseleave", hideTip);
    return element;
  });
  let active = -1;
  const move = (index) => {
    dots[active]?.classList.remove("marked");
    active = Math.min(Math.max(index, 0), dots.length - 1);
    dots[active].classList.add("marked");
    showTip(lines(shown[active]), dots[active].getBoundingClientRect());
    group.setAttribute("aria-label", lines(shown[active]).join(", "));
  };
  const group = s("g", {
    class: "dots", tabindex: 0, role: "img", "aria-label": `${zone.name || "no zone"}: ${words.join(", ")}. Arrow keys name each endpoint.`,
    on: {
      keydown: (event) => {
        const moves = { ArrowRight: active + 1, ArrowLeft: active - 1, ArrowDown: active + perRow, ArrowUp: active - perRow, Home: 0, End: dots.length - 1 };
        if (event.key in moves) { event.preventDefault(); move(moves[event.key]); }
      },
      blur: () => { dots[active]?.classList.remove("marked"); active = -1; hideTip(); },
    },
  }, dots);
  return s("g", null,
    s("rect", { class: "zone-box", x, y, width, height: tallest, rx: 10 }),
    s("text", { x: x + 12, y: y + 20, "font-size": 12.5, "font-weight": 600 }, cut(zone.name || "no zone", Math.floor((width - 20) / 7))),
    s("text", { class: "sub", x: x + 12, y: y + 35, "font-size": 11 }, cut(words.join(", "), Math.floor((width - 16) / 5.6))),
    group,
    more > 0 ? s("text", { class: "sub", x: x + 12, y: y + one.height - 8, "font-size": 11 }, `and ${number(more)} more`) : null);
}

function lines(endpoint) {
  const hinted = endpoint.forZones ? `for clients in ${endpoint.forZones.join(", ") || "no zone"}` : "";
  return [nameOf(endpoint), endpoint.condition, endpoint.addresses.join(", "), endpoint.node ? `on ${endpoint.node}` : "", hinted].filter(Boolean);
}

/** From each zone of clients, how many endpoints in which zones are meant for it. */
function hints(zones) {
  const flows = new Map();
  for (const zone of zones) {
    for (const endpoint of zone.endpoints) {
      for (const client of endpoint.forZones ?? []) {
        const flow = `${client}\n${zone.name}`;
        flows.set(flow, (flows.get(flow) ?? 0) + 1);
      }
    }
  }
  return [...flows].map(([flow, n]) => ({ from: flow.split("\n")[0], to: flow.split("\n")[1], n }));
}

function hintArrows(flows, layout, y) {
  const at = (name) => layout.find((one) => one.zone.name === name);
  const center = (one) => one.x + one.width / 2;
  const boxY = y + 58;
  const clients = [...new Set(flows.map((flow) => flow.from))];
  const arrow = ({ from, to, n }) => {
    const [client, target] = [at(from), at(to)];
    if (!client || !target) return null;
    const [x1, x2] = [center(client), center(target)];
    const d = x1 === x2 ? `M${x1} ${boxY}L${x2} ${y + 9}` : `M${x1} ${boxY}C${x1} ${boxY - 30} ${x2} ${y + 44} ${x2} ${y + 9}`;
    const label = s("text", { class: "sub", x: (x1 + x2) / 2 + 6, y: y + 38, "font-size": 11 }, String(n));
    return s("g", null, s("path", { class: "hint", d }), s("path", { class: "hint-head", d: `M${x2} ${y + 3}L${x2 - 4.5} ${y + 11}L${x2 + 4.5} ${y + 11}Z` }), label);
  };
  const boxes = clients.map((name) => {
    const one = at(name);
    if (!one) return null;
    const boxWidth = Math.min(one.width, 150);
    return s("g", null,
      s("rect", { class: "client", x: center(one) - boxWidth / 2, y: boxY, width: boxWidth, height: 28, rx: 14 }),
      s("text", { x: center(one), y: boxY + 18, "text-anchor": "middle", "font-size": 11.5 }, cut(boxWidth < 130 ? `from ${name}` : `clients in ${name}`, Math.floor(boxWidth / 6.2))));
  });
  // kube-proxy ignores the hints for clients of a zone that no endpoint is meant for.
  const without = layout.filter((one) => one.zone.name !== "" && !clients.includes(one.zone.name)).map((one) =>
    s("text", { class: "sub", x: center(one), y: boxY + 18, "text-anchor": "middle", "font-size": 11.5 }, cut(`${one.zone.name}: all zones`, Math.floor(one.width / 6.2))));
  const text = flows.map(({ from, to, n }) => `${from} to ${to}: ${plural(n, "endpoint")}`).join("; ");
  return s("g", { role: "img", "aria-label": `Hints: traffic from ${text}` }, flows.map(arrow), boxes, without);
}
