// Reads the documentation site in the system's Chromium: `node site_reader.mjs '{"packages", "origin", "pages", "words"}'`. Opens the pages as
// wide as a phone, then searches for the words; what was seen goes to stdout as JSON, for the test that started this to judge.
import { createRequire } from "node:module";

const given = JSON.parse(process.argv[2]);
const { chromium } = createRequire(`${given.packages}/`)("playwright-core");
const seen = { faults: [], foreign: [], too_wide: [], found: [] };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 390, height: 800 } });
  page.setDefaultTimeout(8000);
  page.on("pageerror", (fault) => seen.faults.push(String(fault)));
  page.on("console", (line) => { if (line.type() === "error") seen.faults.push(line.text()); });
  page.on("request", (request) => { if (!request.url().startsWith(given.origin)) seen.foreign.push(request.url()); });
  for (const name of given.pages) {
    await page.goto(`${given.origin}/${name}`);
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) seen.too_wide.push(name);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto(`${given.origin}/index.html`);
  await page.locator("input.md-search__input").click();
  await page.keyboard.type(given.words);
  const results = page.locator("a.md-search-result__link");
  await results.first().waitFor();
  seen.found = await results.evaluateAll((all) => all.map((link) => new URL(link.href).pathname.slice(1)));
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
