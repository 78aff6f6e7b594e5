// Services of several clusters: a playground of its own with three of them.

import { check, startPlayground, until } from "./harness.mjs";

/** The Service that is derived from the import of shop/web. */
const DERIVED = "derived-isrlchlhrq";
const HOSTILE = "<img src=x onerror=\"window.hacked=1\">";
const CLUSTERS = ["ap1", "eu1", "us1"];

const columnsOf = (page) => page.locator(".diagram svg").getAttribute("aria-label");

export async function clustersAreColumns({ page: open, program, images }) {
  const set = await startPlayground(program, ["--clusters", "3"]);
  try {
    const clusters = async () => {
      const { slices } = await set.get(`/api/v1/services/shop/${DERIVED}`);
      return [...new Set((slices ?? []).map((slice) => slice.cluster))].sort().join();
    };
    await until("eu1 imports from all", async () => (await clusters().catch(() => "")) === CLUSTERS.join());
    const page = await open();
    await page.goto(`${set.url}#/service/shop/${DERIVED}`);
    await until("a column for each cluster", async () => {
      const label = await columnsOf(page);
      return CLUSTERS.every((name) => new RegExp(`\\b${name} \\d+ endpoint`).test(label)) && !label.includes("zone-");
    });
    await until("the state of each cluster", async () => {
      const text = await page.locator(".card.clusters").innerText();
      return /ap1\s+InSync/.test(text) && /us1\s+InSync/.test(text) && /eu1\s+this cluster/.test(text);
    });
    await until("one finding for each cluster", async () => (await page.locator(".findings [data-code='EPD715']").count()) === 3);
    check((await page.locator("a:has-text('shop/web')").count()) === 1, "a link to the key that is written");
    await page.screenshot({ path: `${images}/clusters-wide-light.png` });
    await page.goto(`${set.url}#/waiting`);
    await until("two other clusters", async () => (await page.locator(".clusters tbody tr").count()) === 2);
    await page.locator(".figure:has-text('Clusters')", { hasText: "2/2" }).waitFor();
    await page.screenshot({ path: `${images}/clusters-waiting-wide-light.png` });
    await page.goto(`${set.url}#/service/shop/db`);
    await page.locator(".diagram svg").waitFor();
    check((await columnsOf(page)).includes("zone-a"), "a Service of this cluster has a column per zone");
    check(await page.locator(".card.clusters").isHidden(), "and no clusters");
  } finally {
    await set.stop();
  }
}

/** As above, with the names of clusters that nobody can have. */
export async function namesOfClustersAreText({ page: open, playground }) {
  const page = await open();
  await page.route("**/api/v1/services/shop/web", async (route) => {
    const response = await route.fetch();
    const value = await response.json();
    const slices = value.slices.map((slice) => ({ ...slice, cluster: HOSTILE }));
    await route.fulfill({ response, json: { ...value, slices } });
  });
  await page.goto(`${playground.url}#/service/shop/web`);
  await until("the name as text", async () => (await page.locator(".card.clusters").innerText()).includes("<img src=x"));
  check((await columnsOf(page)).includes(HOSTILE), "in the diagram, too");
  check((await page.locator("main img").count()) === 0, "no element was made of a name");
  check((await page.evaluate(() => window.hacked)) === undefined, "nothing ran");
}
