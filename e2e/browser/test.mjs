// Tests of the live page in Chromium. `cargo xtask browser` runs them.
//
//   node test.mjs --program PATH --tools DIRECTORY --chromium PATH --images DIRECTORY [NAME…]

import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";

import { launch, startPlayground } from "./harness.mjs";
import * as behaviour from "./behaviour.mjs";
import * as clusters from "./clusters.mjs";
import * as look from "./look.mjs";
import * as safety from "./safety.mjs";
import { screenshots } from "./screenshots.mjs";

const { values, positionals } = parseArgs({
  options: { program: { type: "string" }, tools: { type: "string" }, chromium: { type: "string" }, images: { type: "string" } },
  allowPositionals: true,
});
mkdirSync(values.images, { recursive: true });

const tests = { ...safety, ...behaviour, ...clusters, ...look, screenshots };
const chosen = Object.entries(tests).filter(([name]) => positionals.length === 0 || positionals.includes(name));
// A large playground needs some time to start, so it starts first.
const hasLarge = chosen.some(([name]) => name === "tenThousandServicesScroll");
const [browser, playground, large] = await Promise.all([
  launch(values),
  startPlayground(values.program),
  hasLarge ? startPlayground(values.program, ["--services", "10000", "--pods", "2000"]) : null,
]);
let nFailed = 0;
for (const [name, test] of chosen) {
  const started = Date.now();
  const pages = [];
  const page = async (options) => {
    pages.push(await browser.page(options));
    return pages.at(-1);
  };
  try {
    const note = await test({ page, playground, large, images: values.images, program: values.program });
    const errors = pages.flatMap((one) => one.errors);
    if (errors.length > 0) throw new Error(`errors in the page: ${errors.join("; ")}`);
    console.log(`ok ${name}, ${((Date.now() - started) / 1000).toFixed(1)} s${note ? `: ${note}` : ""}`);
  } catch (error) {
    nFailed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
    await pages.at(-1)?.screenshot({ path: `${values.images}/failed-${name}.png` }).catch(() => {});
  }
  await Promise.all(pages.map((one) => one.close()));
}
await browser.close();
await Promise.all([playground, large].map((one) => one?.stop()));
console.log(nFailed === 0 ? `${chosen.length} tests passed` : `${nFailed} of ${chosen.length} tests failed`);
process.exitCode = nFailed === 0 ? 0 : 1;
