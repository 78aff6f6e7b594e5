// Loads everything once, then follows the stream. When the stream breaks, the browser continues it
// after the last message it has seen; what was lost is counted, and the rows are loaded again.

import { addLost, applyUpdate, setChanges, setConnection, setIndex, setRows } from "./store.js";

/** A status arrives every second. */
const SILENT_MAX = 6000;
const RETRY = 1500;

let source = null;
let lastId = "";
let lastMessage = 0;
/** Counts loads, so that an old one does not replace a newer one. */
let nLoads = 0;

export async function start() {
  setInterval(watchSilence, 1000);
  for (;;) {
    try {
      await loadAll();
      return follow();
    } catch {
      setConnection("waiting");
      await new Promise((resolve) => { setTimeout(resolve, RETRY); });
    }
  }
}

export async function getJson(path) {
  const response = await fetch(path, { headers: { accept: "application/json" } });
  const value = await response.json();
  if (!response.ok) throw new Error(value.error ?? `status ${response.status}`);
  return value;
}

/** Another process may answer now, of another version. */
async function loadAll() {
  setIndex(await getJson("/api/v1"));
  await load();
  setChanges((await getJson("/api/v1/changes")).changes);
}

async function load() {
  nLoads += 1;
  const load = nLoads;
  const { services, position } = await getJson("/api/v1/services");
  if (load !== nLoads) return;
  if (lastId === "") lastId = position;
  setRows(services);
}

function follow() {
  source?.close();
  source = new EventSource(`/api/v1/stream?after=${encodeURIComponent(lastId)}`);
  lastMessage = Date.now();
  source.addEventListener("open", () => { lastMessage = Date.now(); setConnection("live"); });
  source.addEventListener("update", (event) => {
    seen(event);
    applyUpdate(JSON.parse(event.data));
  });
  source.addEventListener("lost", (event) => {
    seen(event);
    addLost(JSON.parse(event.data).messages);
    reload();
  });
  // The server has started again, nobody was looking for a while, or another process answers: the one
  // that leads now, if `endpointd dashboard` forwards to it.
  source.addEventListener("reset", (event) => { seen(event); reload(); });
  source.addEventListener("error", () => {
    setConnection("waiting");
    // After an answer that is no stream, the browser does not try again.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, RETRY);
  });
}

function seen(event) {
  lastId = event.lastEventId;
  lastMessage = Date.now();
  setConnection("live");
}

async function reload() {
  try {
    await loadAll();
  } catch {
    setTimeout(reload, RETRY);
  }
}

/** A connection can be dead without an error. */
function watchSilence() {
  if (source === null || Date.now() - lastMessage < SILENT_MAX) return;
  setConnection("waiting");
  follow();
}
