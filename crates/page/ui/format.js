// Numbers, times, and words.

export const number = (n) => n.toLocaleString("en");

export function plural(n, word) {
  return `${number(n)} ${word}${n === 1 ? "" : "s"}`;
}

/** `0.8 ms`, `12 ms`, `1.2 s`. */
export function millis(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return seconds(ms / 1000);
}

/** `12 s`, `4 min`, `3 h`. */
export function seconds(value) {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 90) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 129_600) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86_400)} d`;
}

/** `14:03:12.412`, local. */
export function clock(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "–";
  const two = (n) => String(n).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function ago(text, now = Date.now()) {
  if (!text) return "–";
  const age = (now - Date.parse(text)) / 1000;
  return age < 1 ? "now" : `${seconds(age)} ago`;
}

const CONTROLLERS = {
  "endpointslice-controller": "slices",
  "endpoints-controller": "Endpoints",
  "endpointslice-mirroring-controller": "mirroring",
  "endpointslice-import-controller": "import",
  "multicluster-controller": "clusters",
};
export const controller = (name) => CONTROLLERS[name] ?? name;

const REASONS = {
  Failed: "the pod has ended (Failed)",
  Succeeded: "the pod has ended (Succeeded)",
  NoAddress: "the pod has no address yet",
  NoIPv4Address: "the pod has no IPv4 address",
  NoIPv6Address: "the pod has no IPv6 address",
  InvalidAddress: "the pod has an invalid address",
  Terminating: "the pod is terminating",
  NotScheduled: "the pod is not scheduled to a node",
  NodeNotFound: "the node of the pod does not exist",
  NoPort: "no port of the Service exists on the pod",
  ServiceWithoutPorts: "the Service has no ports",
  TooManyPorts: "the pods have too many different ports",
  OverCapacity: "Endpoints hold at most 1,000 addresses",
};
export const reason = (word) => REASONS[word] ?? word;

const IMPORTS = {
  Mirrored: "has its endpoints",
  RefNotPermitted: "no consent",
  SourceNotFound: "no such Service",
  PortNotFound: "a port is missing",
  ChainNotAllowed: "the source imports, too",
  HasSelector: "ignored: has a selector",
  ExternalName: "ignored: ExternalName",
  InvalidReference: "not a valid name",
};

/** What came of the wish for the endpoints of another Service: a level, and a few words. */
export function importState({ status, reason: word }) {
  if (status === null) return ["warn", "waits for the controller"];
  return [status === "True" ? "good" : "bad", IMPORTS[word] ?? word];
}

export const RESULTS = {
  written: "written", unchanged: "unchanged", failed: "failed", throttled: "throttled",
  conflict_retry: "conflict, planned again", namespace_terminating: "namespace is being deleted",
  leadership_lost: "leadership lost",
};

/** YAML of a JSON value, as kubectl prints it. */
export function yaml(value, indent = "") {
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return value.map((item) => `\n${indent}- ${yaml(item, `${indent}  `).replace(/^\n\s*/, "")}`).join("");
  }
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value);
    if (entries.length === 0) return "{}";
    return entries.map(([key, item]) => {
      const nested = item !== null && typeof item === "object" && Object.keys(item).length > 0;
      const inner = Array.isArray(item) ? indent : `${indent}  `;
      return `\n${indent}${scalar(key)}:${nested ? "" : " "}${yaml(item, inner)}`;
    }).join("");
  }
  return scalar(value);
}

function scalar(value) {
  if (typeof value !== "string") return String(value);
  const isPlain = /^[A-Za-z/_][\w./-]*$/.test(value) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}

/** What a change did to endpoints: the sign, the name, and the condition. */
export function endpointPairs(change) {
  return change.writes.filter((write) => write.resource === "endpointslices").flatMap((write) =>
    write.endpoints.map(({ name, before, after }) => {
      if (before === null) return { sign: "+", kind: "added", name, text: after, slice: write.name };
      if (after === null) return { sign: "−", kind: "removed", name, text: `(was ${before})`, slice: write.name };
      return { sign: "~", kind: "changed", name, text: after, slice: write.name };
    }));
}
