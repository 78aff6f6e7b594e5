// The state of the page, and its listeners.

/** Changes kept for the stream. */
const CHANGES_MAX = 1000;

export const state = {
  /** By `namespace/name`. */
  rows: new Map(),
  isLoaded: false,
  status: null,
  /** When the status arrived, for ages that go on. */
  statusAt: 0,
  /** The newest first. */
  changes: [],
  /** `playground` or `run`. */
  mode: null,
  version: "",
  connection: { state: "connecting", since: Date.now() },
  nMessagesLost: 0,
  nChangesLost: 0,
};

const listeners = new Map();

/** Calls `listener` after each event of this name; returns how to stop. */
export function on(name, listener) {
  if (!listeners.has(name)) listeners.set(name, new Set());
  listeners.get(name).add(listener);
  return () => listeners.get(name).delete(listener);
}

function emit(name, detail) {
  for (const listener of listeners.get(name) ?? []) listener(detail);
}

export const keyOf = (row) => `${row.namespace}/${row.name}`;

export function setRows(rows) {
  state.rows = new Map(rows.map((row) => [keyOf(row), prepared(row)]));
  state.isLoaded = true;
  emit("rows", { all: true, keys: new Set() });
}

export function setChanges(changes) {
  state.changes = changes.slice(0, CHANGES_MAX);
  emit("changes", []);
}

export function applyUpdate({ rows, removed, changes, changesLost, status }) {
  const keys = new Set();
  for (const row of rows) {
    keys.add(keyOf(row));
    state.rows.set(keyOf(row), { ...prepared(row), hotUntil: Date.now() + 1500 });
  }
  for (const row of removed) {
    keys.add(keyOf(row));
    state.rows.delete(keyOf(row));
  }
  state.nChangesLost += changesLost;
  if (changes.length > 0) {
    state.changes = [...changes.slice().reverse(), ...state.changes].slice(0, CHANGES_MAX);
  }
  if (status) setStatus(status);
  if (keys.size > 0) emit("rows", { all: false, keys });
  if (changes.length > 0) emit("changes", changes);
}

export function setStatus(status) {
  state.status = status;
  state.statusAt = Date.now();
  state.waiting = new Map();
  for (const key of status.keys ?? []) {
    const known = state.waiting.get(key.key);
    if (!known || RANK[key.state] > RANK[known.state]) state.waiting.set(key.key, key);
  }
  emit("status");
}

const RANK = { idle: 0, waiting: 1, in_flight: 2, backing_off: 3 };

export function setIndex({ mode, version }) {
  Object.assign(state, { mode, version });
  emit("index");
}

export function setConnection(name) {
  if (state.connection.state === name) return;
  state.connection = { state: name, since: Date.now() };
  emit("connection");
}

export function addLost(n) {
  state.nMessagesLost += n;
  emit("connection");
}

/** What is needed for sorting and searching, once per row. */
function prepared(row) {
  const total = [0, 0, 0];
  for (const counts of Object.values(row.zones)) counts.forEach((n, index) => { total[index] += n; });
  return {
    ...row,
    key: keyOf(row),
    search: keyOf(row).toLowerCase(),
    nReady: total[0], nUnready: total[1], nLeaving: total[2],
    nExcluded: Object.values(row.excluded).reduce((sum, n) => sum + n, 0),
    changedMs: row.changedAt ? Date.parse(row.changedAt) : 0,
  };
}

/** Why a Service is not settled, or null. */
export function waitingOf(key) {
  const waiting = state.waiting?.get(key);
  return waiting && (waiting.state !== "idle" || waiting.lastError) ? waiting : null;
}
