// Screenshots of the main views, for the documents and for looking at them.

import { until } from "./harness.mjs";

const VIEWS = { overview: "#/", service: "#/service/shop/cart", stream: "#/stream", waiting: "#/waiting" };
const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

/** Some pods are not ready, and a roll-out runs, so that there is something to see. */
export async function screenshots({ page: open, playground, images }) {
  await playground.act("scale", "cart");
  await playground.act("flapping", "web");
  await playground.act("rollout", "checkout");
  for (const colorScheme of ["light", "dark"]) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const page = await open({ viewport, colorScheme, reducedMotion: "reduce" });
      for (const [view, hash] of Object.entries(VIEWS)) {
        await page.goto(`${playground.url}${hash}`);
        await page.locator(".live[data-state=live]").waitFor();
        await until("the figures", async () => (await page.locator(".figure").count()) > 4);
        if (view === "service") await page.locator(".findings, .findings li").first().waitFor();
        await page.waitForTimeout(300);
        await page.screenshot({ path: `${images}/${view}-${size}-${colorScheme}.png` });
      }
      await page.close();
    }
  }
  await playground.act("flapping", "web");
  await playground.act("scale", "cart");
}
