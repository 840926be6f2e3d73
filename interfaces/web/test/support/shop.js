import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { serving } from '../../../client/ts/test/support/service.js';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const pictures = new URL('../../screenshots/', import.meta.url);

/** A service, a browser, and visits to the pages. */
export async function shop() {
  const service = await serving();
  const browser = await chromium.launch({
    executablePath: process.env.KAKUTEI_TEST_CHROMIUM,
    chromiumSandbox: process.getuid() !== 0, // Chromium's refuses root
    args: ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
  });
  return {
    service,
    browser,
    /** Opens a page in a browsing session of its own. */
    async visit(path = '/', options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(45_000);
      const page = await context.newPage();
      return visit(page, service.url, path);
    },
    async stop() {
      await browser.close();
      await service.stop();
    },
  };
}

async function visit(page, base, path) {
  const requests = [];
  const faults = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => /Content Security Policy|Refused to/.test(message.text()) && faults.push(message.text()));
  await page.goto(base + path);
  return {
    page,
    requests,
    faults,
    /** Until the live view is connected: what happens before would not be shown. */
    live: () => page.waitForSelector('html[data-live=on]'),
    /** Turns a switch on or off. */
    turn: (name, on = true) => page.locator(`#switch-${name}`).setChecked(on),
    async place() {
      await page.click('#place');
      await page.waitForSelector('#pay:enabled');
    },
    /** Pays, and waits until all that the switches say has been done. */
    async pay() {
      await page.click('#pay');
      await this.paid();
    },
    paid: () => page.waitForFunction(() => !document.querySelector('#anew').disabled && /\S/.test(document.querySelector('#told').textContent)
      && !sessionStorage.getItem('kakutei-shop').includes('"paying"')),
    /** How often the gateway's book says that money was taken. */
    charges: async () => Number(await page.getAttribute('#taken', 'data-charges')),
    /** What the arrows say, by their names. */
    arrows: () => page.$$eval('.step', (steps) => steps.map(({ dataset }) => dataset.says)),
    status: () => page.textContent('#order .chip'),
    async picture(name) {
      await mkdir(pictures, { recursive: true });
      await page.screenshot({ path: new URL(`${name}.png`, pictures).pathname, fullPage: true });
    },
    /** What axe-core finds wrong, by rule and place. */
    async violations() {
      // As a page's own script would be: by the browser's evaluation, which the policy does not hinder.
      const { readFile } = await import('node:fs/promises');
      await page.evaluate(await readFile(axe, 'utf8'));
      const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
      return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`));
    },
  };
}

export { writeFile };
