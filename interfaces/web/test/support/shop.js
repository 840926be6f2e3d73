import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { test as bounded } from 'node:test';
import { chromium } from 'playwright-core';
import { serving } from '../../../client/ts/test/support/service.js';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const pictures = new URL('../../screenshots/', import.meta.url);

export const projector = { viewport: { width: 1920, height: 1080 } };
export const telephone = { viewport: { width: 360, height: 780 } };

/** A suite has the time that all of its tests take, on a machine that others use, too; each test has its own. */
export const inChromium = { concurrency: 3, timeout: 900_000 };
export const test = (name, what) => bounded(name, { timeout: 120_000 }, what);

/** A service, a browser, and visits to the pages. */
export async function shop() {
  const browser = await chromium.launch({
    executablePath: process.env.KAKUTEI_TEST_CHROMIUM,
    chromiumSandbox: process.getuid() !== 0, // Chromium's refuses root
    args: ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
  });
  // Without the recovery it is the page's own retry that settles what nobody knows, and not who happens to come first.
  const service = await serving({ KAKUTEI_RECOVERY_INTERVAL: '0' }).catch(async (error) => {
    await browser.close();
    throw error;
  });
  return {
    service,
    browser,
    /** Opens a page in a browsing session of its own. */
    async visit(path = '/', options = {}, at = service.url) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
      context.setDefaultTimeout(45_000);
      const page = await context.newPage();
      return visit(page, at, path);
    },
    /** Does something on a page, on which nothing must go wrong that nobody has switched on. */
    async on(path, options, what) {
      const visit = await this.visit(path, options);
      try {
        await what(visit);
        assert.deepEqual(visit.faults, []);
      } finally {
        await visit.page.context().close();
      }
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
  page.on('request', (request) => {
    requests.push(request.url());
    if (new URL(request.url()).host !== new URL(base).host) faults.push(`asks another host: ${request.url()}`);
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => /Content Security Policy|Refused to/.test(message.text()) && faults.push(message.text()));
  await page.goto(base + path);
  return {
    page,
    /** The addresses that the browser has asked for. */
    requests,
    /** What went wrong in the page: errors, other hosts that were asked, and whatever its policy has forbidden. */
    faults,
    /** Until the live view is connected: what happens before would not be shown. */
    live: () => page.waitForSelector('html[data-live=on]'),
    /** Turns a switch on or off. */
    turn: (name, on = true) => page.locator(`#switch-${name}`).setChecked(on),
    async place() {
      await page.click('#place');
      await page.waitForSelector('#pay:enabled');
    },
    /** A new visit's way to its first order, with these switches on. */
    async ordered(...names) {
      await this.live();
      await this.place();
      for (const name of names) await this.turn(name);
    },
    /** Pays, and waits until all that the switches say has been done. */
    async pay() {
      await page.click('#pay');
      await this.paid();
    },
    /** Until nothing is under way any more, also across a reload. */
    paid: () => page.waitForFunction(() => {
      const { order, paying } = JSON.parse(sessionStorage.getItem('kakutei-shop') ?? '{}');
      return order && !paying && !document.querySelector('#anew').disabled;
    }),
    /** How often the gateway's book says that money was taken. */
    charges: async () => Number(await page.getAttribute('#taken', 'data-charges')),
    /** What the arrows say, by their names. */
    arrows: () => page.$$eval('.step', (steps) => steps.map(({ dataset }) => dataset.says)),
    status: () => page.textContent('#order .chip'),
    /** Writes what a person would see now into a folder that is not committed, for a person to look at. */
    async picture(name) {
      await mkdir(pictures, { recursive: true });
      await page.screenshot({ path: new URL(`${name}.png`, pictures).pathname });
    },
    /** What axe-core finds wrong, by rule and place. */
    async violations() {
      // By the debugger's way into the page: its policy would not load it.
      await page.evaluate(await readFile(axe, 'utf8'));
      const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
      const found = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), runOnly);
      return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`));
    },
  };
}
