// What the tests share: a playground, a browser, and a proxy that can be cut.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

/** Chromium with a profile of its own, from `playwright-core` in the directory `tools`. */
export async function launch({ tools, chromium }) {
  const playwright = createRequire(path.join(tools, "package.json"))("playwright-core");
  const profile = mkdtempSync(path.join(os.tmpdir(), "endpointd-browser-"));
  const context = await playwright.chromium.launchPersistentContext(profile, { executablePath: chromium, args: FLAGS });
  const browser = context.browser() ?? context;
  return {
    /** A new window; errors in the page fail the test. */
    async page(options = {}) {
      const { viewport = { width: 1440, height: 900 }, colorScheme = "light", reducedMotion = "no-preference" } = options;
      const page = await context.newPage();
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme, reducedMotion });
      page.errors = [];
      page.on("pageerror", (error) => page.errors.push(String(error)));
      return page;
    },
    async close() {
      await context.close();
      if (browser !== context) await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** A playground until `stop`; `url` is the address of its page. */
export async function startPlayground(program, args = []) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "endpointd-playground-"));
  const kubeconfig = path.join(folder, "kubeconfig");
  const flags = ["--page-port", "0", "--kubeconfig-out", kubeconfig, ...args];
  const child = spawn(program, ["playground", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => { child.on("exit", resolve); });
  // Also if a test program fails before it stops the playground.
  process.on("exit", () => child.kill("SIGKILL"));
  const url = await new Promise((resolve, reject) => {
    const lines = readline.createInterface({ input: child.stdout });
    lines.on("line", (line) => {
      const found = /^live page at (http:\S+)$/.exec(line);
      if (found) resolve(found[1]);
    });
    child.on("exit", (code) => reject(new Error(`the playground ended with ${code}`)));
  });
  return {
    url,
    origin: new URL(url).origin,
    kubeconfig,
    act: async (action, service = null) => {
      const response = await fetch(new URL("/api/v1/playground", url), {
        method: "POST",
        headers: { "content-type": "application/json", "x-endpointd": "1" },
        body: JSON.stringify({ action, service }),
      });
      return response.json();
    },
    get: async (where) => (await fetch(new URL(where, url))).json(),
    stop: async () => { child.kill("SIGTERM"); await ended; rmSync(folder, { recursive: true, force: true }); },
  };
}

/** A replica of the daemon that elects a leader with others, for a namespace without Services. */
export async function startReplica(program, kubeconfig) {
  const flags = [
    "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
    "--leader-elect-resource-namespace=shop", "--leader-elect-resource-name=replicas", "--namespaces=nothing-here",
    "--metrics-bind-address=127.0.0.1:0", "--secure-port=0",
  ];
  const child = spawn(program, ["run", "--kubeconfig", kubeconfig, ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => { child.on("exit", resolve); });
  process.on("exit", () => child.kill("SIGKILL"));
  const log = [];
  const origin = await new Promise((resolve, reject) => {
    readline.createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      const found = /status_address=(\S+)/.exec(line);
      if (found) resolve(`http://${found[1]}`);
    });
    child.on("exit", (code) => reject(new Error(`the replica ended with ${code}: ${log.join("\n")}`)));
  });
  return {
    origin,
    leadership: async () => (await (await fetch(`${origin}/report`)).json()).process.leadership.state,
    /** As if its machine had no time for it; the others take its Lease. */
    freeze: () => child.kill("SIGSTOP"),
    thaw: () => child.kill("SIGCONT"),
    stop: async () => { child.kill("SIGKILL"); await ended; },
  };
}

/** Forwards connections to `origin`; `cut` closes all of them and refuses new ones. */
export async function startProxy(origin) {
  let { hostname, port } = new URL(origin);
  const sockets = new Set();
  const heads = [];
  let isCut = false;
  const server = net.createServer((client) => {
    if (isCut) return client.destroy();
    const upstream = net.connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("close", () => { sockets.delete(socket); client.destroy(); upstream.destroy(); });
      socket.on("error", () => {});
    }
    client.once("data", (data) => heads.push(data.toString("latin1")));
    client.pipe(upstream);
    upstream.pipe(client);
    return undefined;
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/ui/`,
    /** The heads of all requests. */
    heads,
    cut() { isCut = true; sockets.forEach((socket) => socket.destroy()); },
    restore() { isCut = false; },
    /** As `endpointd dashboard` does when another pod leads. */
    goTo(other) { ({ hostname, port } = new URL(other)); sockets.forEach((socket) => socket.destroy()); },
    stop() { this.cut(); server.close(); },
  };
}

/** Waits for a condition; time-outs are for machines that are busy with other things. */
export async function until(what, condition, ms = 30_000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

export function check(condition, message) {
  if (!condition) throw new Error(message);
}
