// Builds elements. Everything from the cluster becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: `h("a", { class: "x", href: "#/", on: { click } }, "text", child)`. */
export function h(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      // Through the CSSOM, which the content security policy allows.
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** Replaces the text only if it differs, so that nothing flickers and selections stay. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SHAPES = {
  // Distinguishable without colour: full circle, hollow diamond, full triangle, hollow triangle.
  ready: { class: "dot dot-ready", d: (r) => circle(r * 0.92) },
  "not ready": { class: "dot dot-unready", d: (r) => `M0 ${-r}L${r} 0L0 ${r}L${-r} 0Z` },
  "serving while terminating": { class: "dot dot-serving", d: (r) => triangle(r) },
  terminating: { class: "dot dot-leaving", d: (r) => triangle(r) },
};

function circle(r) {
  return `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
}

function triangle(r) {
  return `M0 ${r * 0.9}L${-r} ${-r * 0.75}L${r} ${-r * 0.75}Z`;
}

/** An endpoint: its shape and colour say its condition. */
export function dot(condition, x, y, r) {
  const shape = SHAPES[condition] ?? SHAPES["not ready"];
  return s("path", { class: shape.class, d: shape.d(r), transform: `translate(${x} ${y})` });
}

export function legend() {
  const entry = (condition, text) =>
    h("span", null, s("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, dot(condition, 0, 0, 5)), text);
  return h("div", { class: "legend" },
    entry("ready", "ready"), entry("not ready", "not ready"),
    entry("serving while terminating", "serving while terminating"), entry("terminating", "terminating"));
}

const ICONS = {
  error: "M8 1 15 14H1ZM7.2 5.5h1.6l-.2 4.6H7.4ZM7.1 11.2h1.8v1.7H7.1Z",
  warning: "M8 1 15 8 8 15 1 8ZM7.2 4.2h1.6l-.2 4.8H7.4ZM7.1 10h1.8v1.7H7.1Z",
  info: "M8 1a7 7 0 1 1 0 14A7 7 0 1 1 8 1ZM7.2 7h1.6v5H7.2ZM7.1 4h1.8v1.7H7.1Z",
  good: "M6.4 13.2 1.6 8.4l1.5-1.5 3.3 3.3 6.6-6.6 1.5 1.5Z",
};

export function icon(level) {
  return s("svg", { viewBox: "0 0 16 16", role: "img", "aria-label": level },
    s("path", { class: `${level}-icon`, d: ICONS[level] ?? ICONS.info, "fill-rule": "evenodd" }));
}

/** A command of the shell, with a button that copies it. */
export function command(text) {
  const button = h("button", { class: "button plain", type: "button", "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      setText(button, "Copied");
    } catch {
      setText(button, "Select the text");
    }
    setTimeout(() => setText(button, "Copy"), 1500);
  });
  return h("span", { class: "command" }, h("code", null, text), button);
}

const tip = () => document.getElementById("tooltip");

export function showTip(lines, box) {
  const element = tip();
  replace(element, h("strong", null, lines[0]), lines.slice(1).map((line) => h("div", null, line)));
  element.hidden = false;
  const width = element.offsetWidth;
  const left = Math.min(Math.max(8, box.left + box.width / 2 - width / 2), window.innerWidth - width - 8);
  const above = box.top - element.offsetHeight - 8;
  element.style.setProperty("left", `${left}px`);
  element.style.setProperty("top", `${above > 4 ? above : box.bottom + 8}px`);
}

export function hideTip() {
  tip().hidden = true;
}
