// How the page looks: dark, narrow, without motion, and readable.

import { check, until } from "./harness.mjs";

const VIEWS = ["#/", "#/service/shop/web", "#/stream", "#/waiting"];

async function visit(page, playground, view) {
  await page.goto(`${playground.url}${view}`);
  await page.locator(".live[data-state=live]").waitFor();
  await until("the figures", async () => (await page.locator(".figure").count()) > 4);
}

/** Dark is dark, and text has the contrast of WCAG AA in both. */
export async function textIsReadableInLightAndDark({ page: open, playground }) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open({ colorScheme });
    for (const view of VIEWS) {
      await visit(page, playground, view);
      await page.waitForTimeout(400);
      const { background, low } = await page.evaluate(contrasts);
      check((background < 0.1) === (colorScheme === "dark"), `${colorScheme}: the ground has luminance ${background}`);
      check(low.length === 0, `${colorScheme} ${view}: low contrast: ${low.join("; ")}`);
    }
  }
}

/** Runs in the page. */
function contrasts() {
  const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((n) => n / 255).map((n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4))
    .reduce((sum, n, index) => sum + n * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "");
    if (!hasText || element.closest("svg, .skip, noscript, [hidden]") || element.getClientRects().length === 0) continue;
    const [a, b] = [luminance(numbers(getComputedStyle(element).color)), luminance(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.45) low.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)} "${element.textContent.slice(0, 20)}"`);
  }
  return { background: luminance(numbers(getComputedStyle(document.body).backgroundColor)), low: [...low].slice(0, 5) };
}

/** Nothing is wider than a phone. */
export async function aPhoneNeedsNoSidewaysScrolling({ page: open, playground }) {
  const page = await open({ viewport: { width: 390, height: 844 } });
  for (const view of VIEWS) {
    await visit(page, playground, view);
    await page.waitForTimeout(300);
    const width = await page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth,
      ...[...document.querySelectorAll("main, .card, .list, .diagram svg")].map((one) => one.getBoundingClientRect().right)));
    check(width <= 390, `${view} is ${width} pixels wide`);
  }
}

/** Who asks for less motion gets none. */
export async function reducedMotionMeansNoMotion({ page: open, playground }) {
  for (const [reducedMotion, moves] of [["reduce", false], ["no-preference", true]]) {
    const page = await open({ reducedMotion });
    await visit(page, playground, "#/");
    await page.locator(".row").first().waitFor();
    const isMoving = await page.evaluate(() => {
      const row = document.querySelector(".row");
      row.classList.add("hot");
      const running = row.getAnimations().length > 0;
      const transition = getComputedStyle(document.querySelector(".button")).transitionDuration;
      return running || !/^0s/.test(transition);
    });
    check(isMoving === moves, `${reducedMotion}: moving is ${isMoving}`);
  }
}
