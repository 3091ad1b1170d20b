// Drives the system's Chromium through the console: `node journey.mjs STEPS.json`. The file names the link, and what to do in which order;
// what was seen goes to stdout as JSON, for the test that started this to judge. Every wait is bounded.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(`${given.packages}/`)("playwright-core");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const profile = mkdtempSync(join(tmpdir(), "pactgate-browser-"));
const seen = { faults: [], violations: [], foreign: [] };

const browser = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium", args: FLAGS, viewport: { width: 1280, height: 800 },
});
browser.setDefaultTimeout(8000);
const page = browser.pages()[0] ?? (await browser.newPage());
page.on("pageerror", (fault) => seen.faults.push(String(fault)));
page.on("console", (line) => { if (/Content Security Policy|TrustedHTML/.test(line.text())) seen.violations.push(line.text()); });
page.on("request", (request) => { if (!request.url().startsWith(given.origin)) seen.foreign.push(request.url()); });

async function call(name, args) {
  await page.goto(`${given.origin}/console/tools/${encodeURIComponent(name)}`);
  for (const [field, value] of Object.entries(args)) await page.locator(`.playground [id$="-${field}"]`).fill(String(value));
  await page.locator(".playground button[type=submit]").click();
}

const steps = {
  async sign_in() {
    await page.goto(given.link);
    await page.locator("[data-server]").first().waitFor();
    seen.hash = await page.evaluate(() => location.hash);
    seen.cookie = await page.evaluate(() => document.cookie);
    seen.paint_ms = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null);
  },
  async servers() {
    await page.waitForFunction((count) => document.querySelectorAll('[data-status="connected"]').length === count, given.servers);
    seen.servers = await page.locator("[data-server]").evaluateAll((cards) => cards.map((card) => card.dataset.server).sort());
  },
  async try_one() {
    await page.locator(".try button[type=submit]").click();
    seen.tried = await page.locator(".try .result.fine").innerText();
  },
  async kill() {
    await page.goto(`${given.origin}/console/`);
    const card = `[data-server="${given.victim}"]`;
    await page.locator(`${card}[data-status="connected"]`).waitFor();
    const turned = page.evaluate((selector) => new Promise((resolve, reject) => {
      const begun = performance.now();
      const look = () => {
        const found = document.querySelector(selector);
        if (!found || found.dataset.status === "connected") return;
        const reason = found.querySelector(".reason")?.textContent;
        resolve({ ms: performance.now() - begun, status: found.dataset.status, reason });
      };
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
      setTimeout(() => reject(new Error("the card did not turn")), 5000);
    }), card);
    turned.catch(() => undefined);
    // A server that comes back within 100 ms may not be seen to go: it is ended again until the gateway waits before it tries again.
    let last = 0;
    const again = setInterval(async () => {
      const rows = await fetch(`${given.origin}/api/servers`).then((got) => got.json()).catch(() => ({ servers: [] }));
      const pid = rows.servers.find((row) => row.serverId === given.victim)?.pid;
      if (pid && pid !== last) process.kill((last = pid), "SIGKILL");
    }, 50);
    seen.turned = await turned.finally(() => clearInterval(again));
    await page.locator(`${card}[data-status="connected"]`).waitFor();
  },
  async progress() {
    await call("scratchpad.countdown", { steps: 4, intervalMs: 200 });
    await page.locator(".progress", { hasText: "of 4" }).waitFor();
    seen.counted = await page.locator(".result.fine").innerText();
  },
  async cancel() {
    await call("scratchpad.countdown", { steps: 50, intervalMs: 200 });
    await page.locator(".progress", { hasText: "of 50" }).waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    seen.cancelled = await page.locator(".result").innerText();
  },
  async wrong() {
    await call("almanac.days_between", { start: "2026-01-01" });
    seen.wrong = await page.locator(".result.failed").innerText();
  },
  async broken_json() {
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    const field = page.getByLabel("Arguments as JSON");
    await field.fill('{"start": "2026-01-01"');
    let sent = 0;
    page.on("request", (request) => (sent += request.url().endsWith("/mcp")));
    await page.getByRole("button", { name: /^Run/ }).click();
    await page.waitForTimeout(300);
    seen.broken_json = { sent, focused: await field.evaluate((one) => one === document.activeElement) };
  },
  async ask() {
    await call(given.asking, {});
    const dialog = page.locator("dialog");
    await dialog.waitFor();
    seen.question = await dialog.innerText();
    for (const [field, value] of Object.entries(given.answers)) await dialog.locator(`[id$="-${field}"]`).fill(value);
    await dialog.getByRole("button", { name: "Answer" }).click();
    seen.answered = await page.locator(".result.fine").innerText();
  },
  async find() {
    await page.goto(`${given.origin}/console/calls`);
    await page.getByLabel("Filter").fill("tool:countdown outcome:cancelled");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/filter=/);
    await page.locator(".space .row").first().waitFor();
    seen.rows = await page.locator(".space .row .name").allInnerTexts();
    await page.locator(".space .row a").first().click();
    await page.locator(".steps li").first().waitFor();
    seen.call = await page.locator("main").innerText();
  },
  async bad_filter() {
    await page.goto(`${given.origin}/console/calls?filter=tol:x`);
    seen.bad_filter = await page.locator("[role=alert]").innerText();
  },
  async disable() {
    await page.goto(`${given.origin}/console/servers/${given.victim}`);
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("button", { name: "Enable" }).waitFor();
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByRole("button", { name: "Disable" }).waitFor();
    seen.switched = true;
  },
  async hostile() {
    await page.goto(`${given.origin}/console/tools`);
    const link = page.locator(".catalog li a", { hasText: given.hostile });
    await link.waitFor();
    await link.click();
    await page.locator(".playground button[type=submit]").click();
    await page.locator(".result").waitFor();
    seen.hostile = await page.locator(".detail").innerText();
    seen.injected = await page.evaluate(() => ({
      ran: "pwned" in window, images: document.images.length, scripts: document.scripts.length,
      links: [...document.links].filter((link) => link.protocol === "javascript:").length,
    }));
    const begun = Date.now();
    await page.locator(".brand").click();
    await page.locator(".rates").waitFor();
    seen.responsive_ms = Date.now() - begun;
  },
  async foreign_page() {
    const other = await browser.newPage();
    await other.goto(given.elsewhere);
    seen.foreign_page = await other.evaluate(async (origin) => {
      const send = (path, init) => fetch(origin + path, { credentials: "include", ...init }).then((got) => got.status, () => "refused");
      const frame = document.createElement("iframe");
      frame.src = `${origin}/console/`;
      document.body.append(frame);
      await new Promise((done) => { frame.onload = done; setTimeout(done, 2000); });
      let framed = "blocked";
      try { framed = frame.contentWindow.location.href; } catch { framed = "blocked"; }
      const json = { "Content-Type": "application/json", "X-Pactgate-Console": "x" };
      return {
        read: await send("/console/session", { headers: { "X-Pactgate-Console": "x" } }),
        write: await send("/console/session", { method: "DELETE", headers: json }),
        call: await send("/mcp", { method: "POST", headers: json, body: "{}" }),
        framed,
      };
    }, given.origin);
    seen.frames = other.frames().map((frame) => frame.url());
    await other.close();
  },
  async sign_out() {
    await page.goto(`${given.origin}/console/`);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.locator("#secret").waitFor();
    await page.goto(given.link);
    await page.locator("[role=alert]").waitFor();
    seen.signed_out = await page.locator("main").innerText();
  },
  async layouts() {
    const kept = ["now-light-wide", "now-dark-wide", "now-light-narrow", "calls-light-wide", "call-light-wide", "tools-dark-wide", "tools-dark-narrow"];
    const shots = { now: "", calls: "calls", tools: "tools/scratchpad.countdown", servers: "servers" };
    const id = await page.evaluate(() => fetch("/api/calls?filter=outcome:!ok", { headers: { "X-Pactgate-Console": localStorage.getItem("pactgate-console-key") } }).then((got) => got.json()).then((got) => got.calls.at(-1)?.requestId));
    if (id) shots.call = `calls/${id}`;
    for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: width > 500 ? 800 : 780 });
      for (const [name, path] of Object.entries(shots)) {
        await page.goto(`${given.origin}/console/${path}`);
        await page.locator("main :is(h1, h2):visible").first().waitFor();
        if (path !== "servers") await page.locator("main :is(a, button):visible").nth(2).waitFor();
        seen.overflow = Math.max(seen.overflow ?? 0, await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
        const picture = `${name}-${scheme}-${width > 500 ? "wide" : "narrow"}`;
        if (!given.pictures || !kept.includes(picture)) continue;
        if (name === "now") await page.locator("[data-server]").nth(3).waitFor();
        await page.screenshot({ path: join(given.pictures, `${picture}.png`) });
      }
    }
  },
};

try {
  for (const step of given.steps) {
    try {
      await steps[step]();
    } catch (fault) {
      seen.failed = `${step}: ${fault.message}`;
      seen.page = (await page.locator("body").innerText().catch(() => "")).slice(-1200);
      break;
    }
  }
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(seen));
