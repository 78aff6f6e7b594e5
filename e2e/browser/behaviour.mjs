// What a visitor does: roll-outs, one Service, a cut stream, many Services, the keyboard.

import { check, startProxy, startReplica, until } from "./harness.mjs";

const row = (page, key) => page.locator(`.row[data-key="${key}"]`);
const text = (locator) => locator.innerText();

/** A roll-out changes the row, and every write of it is in the stream. */
export async function rollOutChangesTheRows({ page: open, playground }) {
  const page = await open();
  await page.goto(playground.url);
  await row(page, "shop/web").waitFor();
  await page.locator("#controls [data-action=rollout]").click();
  const caption = await until("the caption", async () => /rollout of (\S+)/.exec(await text(page.locator("#controls .did"))));
  const key = `shop/${caption[1]}`;
  const before = await text(row(page, key));
  await until("the row changes", async () => (await text(row(page, key))) !== before);
  await until("some endpoint is not ready meanwhile", async () => /\+\d/.test(await text(row(page, key).locator(".zones"))));
  await until("all are ready again", async () => !/[+−]\d/.test(await text(row(page, key).locator(".zones"))), 60_000);
  await page.keyboard.press("2");
  await page.locator(`.stream .key:has-text("${key}")`).first().waitFor();
  const line = await text(page.locator(`.stream li:has(.key:text-is("${key}"))`).first());
  check(/\d\d:\d\d:\d\d\.\d{3}/.test(line) && /→/.test(line) && /\d m?s/.test(line), `a line of the stream: ${line}`);
  await page.locator("button:has-text('Pause')").click();
  await playground.act("scale", "db");
  await until("a paused stream counts", async () => /Paused · [1-9]/.test(await text(page.locator(".note"))));
  await playground.act("scale", "db");
  await page.locator("main input[type=search]").fill("no such pod");
  await page.locator("text=No change matches the filter.").waitFor();
}

/** Failing probes are findings, other shapes in the diagram, and entries in the timeline. */
export async function aServiceShowsItsFindings({ page: open, playground }) {
  const page = await open();
  await page.goto(playground.url);
  await row(page, "shop/checkout").click();
  await page.locator("h1:has-text('shop/checkout')").waitFor();
  await page.locator(".diagram .dot-ready").first().waitFor();
  await page.locator(".side [data-action=flapping]").click();
  await page.locator(".findings li[data-code=EPD301]").first().waitFor();
  check(/sends traffic to \d+ of \d+ pods/.test(await text(page.locator(".verdict"))), "the verdict counts");
  await page.locator(".diagram .dot-unready").first().waitFor();
  const ready = await page.locator(".diagram .dot-ready").first().getAttribute("d");
  const unready = await page.locator(".diagram .dot-unready").first().getAttribute("d");
  check(ready !== unready, "conditions differ in shape, not only in colour");
  const entry = await text(page.locator(".timeline > li").first());
  check(/planned 1 update/.test(entry) && /wrote in/.test(entry), `an entry of the timeline: ${entry}`);
  await page.locator(".slices summary").first().click();
  await until("the YAML", async () => /kind: EndpointSlice/.test(await text(page.locator(".yaml").first())));
  await page.locator("summary:has-text('The same with kubectl')").click();
  await page.locator("code:has-text('kubectl scale deployment checkout')").waitFor();
  await page.locator(".side [data-action=flapping]").click();
  await until("all is well again", async () => (await page.locator(".findings li[data-code=EPD301]").count()) === 0, 60_000);
}

/** The page says that the stream is cut, and continues after the last message it has seen. */
export async function aCutStreamResumes({ page: open, playground }) {
  const proxy = await startProxy(playground.origin);
  const page = await open();
  await page.goto(proxy.url);
  await page.locator(".live[data-state=live]").waitFor();
  await row(page, "shop/cart").waitFor();
  const before = await text(row(page, "shop/cart").locator(".zones"));
  proxy.cut();
  await page.locator(".live:has-text('Reconnecting')").waitFor();
  await page.locator("#banner:has-text('No connection')").waitFor();
  await playground.act("scale", "cart");
  const nBefore = proxy.heads.length;
  proxy.restore();
  await page.locator(".live[data-state=live]").waitFor();
  await until("the change of meanwhile", async () => (await text(row(page, "shop/cart").locator(".zones"))) !== before);
  const resumed = proxy.heads.slice(nBefore).filter((head) => /^GET \/api\/v1\/stream/.test(head));
  check(resumed.some((head) => /last-event-id: \d+-\d+|after=\d+-\d+/i.test(head)), "the stream continues after an id");
  const loads = proxy.heads.slice(nBefore).filter((head) => /^GET \/api\/v1\/services /.test(head));
  check(loads.length === 0, "a short cut needs no reload");
  await playground.act("scale", "cart");
  proxy.stop();
}

/** Only visible rows exist, and moving through 10,000 of them takes little time. */
export async function tenThousandServicesScroll({ page: open, large }) {
  const page = await open();
  await until("the large cluster is published", async () => (await large.get("/api/v1/services")).services?.length > 10_000, 90_000);
  await page.goto(large.url);
  await until("all rows", async () => /^10,00\d Services$/.test(await text(page.locator(".note"))));
  const { times, most } = await page.evaluate(async () => {
    const scroller = document.querySelector(".scroller");
    const step = scroller.scrollHeight / 200;
    const found = [];
    let most = 0;
    for (let n = 0; n < 200; n += 1) {
      const started = performance.now();
      scroller.scrollTop = n * step;
      scroller.dispatchEvent(new Event("scroll"));
      // Reading a position makes the browser compute the layout now.
      document.querySelector(".row:last-child")?.getBoundingClientRect();
      found.push(performance.now() - started);
      most = Math.max(most, document.querySelectorAll(".row").length);
      if (n % 20 === 0) await new Promise(requestAnimationFrame);
    }
    return { times: found.sort((a, b) => a - b), most };
  });
  // The time depends on what else the machine does, the number of elements does not.
  check(most > 0 && most < 60, `only visible rows exist, not ${most}`);
  await page.locator(".scroller").focus();
  await page.keyboard.press("End");
  await until("the last row", async () => Number(await page.locator(".row.active").getAttribute("aria-rowindex")) > 10_000);
  const started = Date.now();
  await page.locator("main input[type=search]").fill("web-1250");
  await until("the search", async () => /^1 of /.test(await text(page.locator(".note"))));
  const searched = Date.now() - started;
  await page.locator("main input[type=search]").fill("");
  await page.locator(".columns [data-column=slices]").click();
  await until("sorted", async () => (await page.locator(".columns [data-column=slices]").getAttribute("aria-pressed")) === "true");
  return `a step of scrolling ${times[100].toFixed(1)} ms (median) with at most ${most} rows; a search ${searched} ms`;
}

/** Everything that a mouse can do. */
export async function theKeyboardIsEnough({ page: open, playground }) {
  const page = await open();
  await page.goto(playground.url);
  await row(page, "shop/web").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("shop/");
  await page.keyboard.press("Enter");
  const active = () => page.locator(".row.active").getAttribute("data-key");
  await until("a row is active", async () => (await page.locator(".row.active").count()) === 1);
  const first = await active();
  await page.keyboard.press("ArrowDown");
  check((await active()) !== first, "the arrow moves");
  await page.keyboard.press("End");
  const chosen = await active();
  await page.keyboard.press("Enter");
  await page.locator(`h1:has-text('${chosen}')`).waitFor();
  await page.locator(".diagram .dots").first().focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".tooltip:not([hidden])").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".scroller").waitFor();
  await page.keyboard.press("3");
  await page.locator("h2:has-text('In the queue')").waitFor();
  await page.keyboard.press("1");
  await page.locator(".scroller").waitFor();
  // From the start of the page to a button of the playground, and press it.
  const reached = new Set();
  for (let n = 0; n < 30; n += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.dataset.action ?? document.activeElement?.className ?? ""));
    const outline = await page.evaluate(() => {
      const style = getComputedStyle(document.activeElement);
      return document.activeElement === document.body || document.activeElement.matches(".scroller") || style.outlineStyle !== "none";
    });
    check(outline, "the focus is visible");
  }
  check(reached.has("rollout") && reached.has("api-outage"), `Tab reaches the buttons: ${[...reached]}`);
}

/** A page that is open while the leader changes says so, and continues with the new leader. */
export async function anotherLeaderTakesOver({ page: open, playground, program }) {
  const first = await startReplica(program, playground.kubeconfig);
  await until("the first leads", async () => (await first.leadership()) === "leading");
  const second = await startReplica(program, playground.kubeconfig);
  const proxy = await startProxy(first.origin);
  const page = await open();
  await page.goto(proxy.url);
  await page.locator(".live[data-state=live]").waitFor();
  const leader = page.locator(".figure:has-text('Leader') dd");
  await until("this process leads", async () => (await text(leader)) === "this process");
  const loadsBefore = proxy.heads.filter((head) => /^GET \/api\/v1\/services /.test(head)).length;
  first.freeze();
  await until("the second leads", async () => (await second.leadership()) === "leading");
  first.thaw();
  await page.locator("#banner:has-text('on standby')").waitFor();
  proxy.goTo(second.origin);
  await until("no banner", async () => page.locator("#banner").isHidden());
  await until("the other process leads", async () => (await text(leader)) === "this process");
  await page.locator(".live[data-state=live]").waitFor();
  const loads = proxy.heads.filter((head) => /^GET \/api\/v1\/services /.test(head)).length;
  check(loads === loadsBefore + 1, `the rows are those of the other process: ${loads - loadsBefore} loads`);
  proxy.stop();
  await Promise.all([first.stop(), second.stop()]);
}

/** Who asks for the endpoints of whom, and whether its owner agrees. */
export async function importsShowTheirConsent({ page: open, playground }) {
  const page = await open();
  await page.goto(`${playground.url}#/waiting`);
  const asked = page.locator(".imports li").first();
  await until("the import", async () => /shop\/web/.test(await text(asked)) && /has its endpoints/.test(await text(asked)));
  check(/\d+ endpoints, \d+ ready/.test(await text(asked)), `its endpoints: ${await text(asked)}`);
  const consumer = await text(asked.locator("a").first());
  await page.locator("#controls [data-action=consent]").click();
  await until("no consent", async () => /no consent/.test(await text(asked)) && /does not permit it/.test(await text(asked)));
  await page.keyboard.press("1");
  await until("the row says so", async () => /not imported: no consent/.test(await text(row(page, consumer))));
  await page.locator("#controls [data-action=consent]:has-text('Give consent')").click();
  await row(page, consumer).click();
  await page.locator(".facts .tag.good:has-text('endpoints of shop/web: has its endpoints')").waitFor();
  check(!/of another writer/.test(await text(page.locator(".facts"))), "imported slices are ours");
  await page.goto(`${playground.url}#/service/shop/web`);
  await page.locator(`.side h2:has-text('Also published by')`).waitFor();
  await page.locator(`.side a:has-text('${consumer}')`).waitFor();
}

/** An outage of the API server is a banner and waiting keys, and ends. */
export async function anOutageIsShownAndEnds({ page: open, playground }) {
  const page = await open();
  await page.goto(`${playground.url}#/waiting`);
  await page.locator("#controls [data-action=api-outage]").click();
  await page.locator("#banner:has-text('Disconnected from the API server')").waitFor();
  await page.locator("#controls [data-action=api-outage]:has-text('End API outage')").click();
  await until("no banner", async () => page.locator("#banner").isHidden(), 60_000);
}
