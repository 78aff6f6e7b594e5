// What the page must not do: run text of the cluster, answer to other hosts, act for other pages.

import http from "node:http";

import { check, until } from "./harness.mjs";

const HOSTILE = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

function request(origin, path, { method = "GET", headers = {} } = {}) {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const sent = http.request({ hostname, port, path, method, headers }, (response) => {
      response.resume();
      resolve(response);
    });
    sent.on("error", reject);
    sent.end(method === "POST" ? "{\"action\":\"rollout\"}" : undefined);
  });
}

export async function onlyLoopbackNamesAreAnswered({ playground }) {
  for (const path of ["/ui/", "/ui/app.js", "/api/v1/services", "/api/v1/stream"]) {
    const other = await request(playground.origin, path, { headers: { host: "rebound.example" } });
    check(other.statusCode === 421, `${path} for another host: ${other.statusCode}`);
  }
  const page = await request(playground.origin, "/ui/");
  const policy = page.headers["content-security-policy"];
  check(page.statusCode === 200 && /default-src 'none'/.test(policy) && /frame-ancestors 'none'/.test(policy), `the policy: ${policy}`);
  check(!/unsafe/.test(policy), "nothing inline, no eval");
}

export async function otherPagesCannotAct({ playground }) {
  const post = (headers) => request(playground.origin, "/api/v1/playground", { method: "POST", headers: { "content-type": "text/plain", ...headers } });
  check((await post({})).statusCode === 403, "a form of another page");
  check((await post({ "x-endpointd": "1", origin: "http://evil.example" })).statusCode === 403, "a script of another page");
  const preflight = await request(playground.origin, "/api/v1/playground", { method: "OPTIONS", headers: { origin: "http://evil.example", "access-control-request-method": "POST" } });
  check(preflight.headers["access-control-allow-origin"] === undefined, "no permission for other origins");
  check((await post({ "x-endpointd": "1" })).statusCode === 200, "the page itself");
}

/** Names and messages with markup, wherever the API has text. */
export async function namesFromTheClusterAreText({ page: open, playground }) {
  const page = await open();
  const hostile = (value) => JSON.parse(JSON.stringify(value), (key, it) =>
    (typeof it === "string" && !/^(namespace|name|at|changedAt|apiVersion|condition|source|state|level|code|controller|result|resource|verb|position|before)$/.test(key) ? HOSTILE : it));
  const change = async (route, edit) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: edit(await response.json()) });
  };
  await page.route("**/api/v1/services", (route) => change(route, (value) => ({
    ...value, services: value.services.map((row) => ({ ...row, name: row.name === "web" ? HOSTILE : row.name, zones: { [HOSTILE]: [1, 1, 1] } })),
  })));
  await page.route("**/api/v1/services/shop/*", (route) => change(route, hostile));
  await page.route("**/api/v1/services/shop/*/findings", (route) => change(route, (value) => ({
    ...hostile(value), findings: [{ code: "EPD301", level: "error", object: { kind: HOSTILE, name: HOSTILE }, message: HOSTILE, nearMiss: HOSTILE, try: HOSTILE }],
  })));
  await page.route("**/api/v1/slices/**", (route) => change(route, (value) => ({ ...value, metadata: { labels: { [HOSTILE]: HOSTILE } } })));
  await page.route("**/api/v1/changes", (route) => change(route, (value) => ({
    ...value, changes: [...value.changes.slice(0, 5).map((one) => ({ ...hostile(one), name: HOSTILE, error: HOSTILE, result: "failed" }))],
  })));
  const isText = async (where) => {
    await until(`the text in ${where}`, async () => (await page.locator(where).allInnerTexts()).some((text) => text.includes("<img src=x")));
  };
  await page.goto(playground.url);
  await isText(".row .name");
  await isText(".row .zones");
  await page.goto(`${playground.url}#/service/shop/db`);
  await isText(".findings .message");
  await isText(".facts");
  await page.locator(".slices summary").first().click();
  await isText(".yaml");
  await page.goto(`${playground.url}#/stream`);
  await isText(".stream .what");
  check((await page.locator("main img, main script").count()) === 0, "no element was made of a name");
  // Even a mistake of the page would not run it: the policy forbids inline scripts and markup.
  const result = await page.evaluate(() => {
    const script = document.createElement("script");
    try { script.text = "window.hacked = 1"; } catch { /* trusted types */ }
    document.body.append(script);
    try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked=1'>"); } catch { return "refused"; }
    return "accepted";
  });
  check(result === "refused", "markup from strings is refused");
  check((await page.evaluate(() => window.hacked)) === undefined, "nothing ran");
}
