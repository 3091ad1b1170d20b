// A person at a browser: opens the page of the identity provider, types name and password, and ends at the client's callback.
// Arguments: the folder whose node_modules holds playwright-core, the URL to open, the callback, name, password. Prints the last URL.
// A text after these is waited for on the last page, and a file after that gets a picture of it.
import { createRequire } from 'node:module';
import path from 'node:path';

const [folder, url, callback, name, password, text, picture] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), 'here.js'));
const { chromium } = require('playwright-core');

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync',
  ],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(30000);
  const back = page.waitForRequest((request) => request.url().startsWith(callback));
  await page.goto(url);
  await page.locator('#username').fill(name);
  await page.locator('#password').fill(password);
  await page.locator('#kc-login').click();
  const last = (await back).url();
  if (text) await page.getByText(text).waitFor();
  if (picture) await page.screenshot({ path: picture });
  console.log(last);
} finally {
  await browser.close();
}
