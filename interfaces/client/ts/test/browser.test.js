import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, suite, test } from 'node:test';
import { chromium } from 'playwright-core';
import { serving } from './support/service.js';
import { shop } from './support/shop.js';

const withoutLocks = () => Object.defineProperty(navigator, 'locks', { value: undefined });

suite('in Chromium', () => {
  let service, browser, context, front, orderId;
  before(async () => {
    service = await serving();
    browser = await chromium.launch({
      executablePath: process.env.KAKUTEI_TEST_CHROMIUM,
      chromiumSandbox: process.getuid() !== 0, // Chromium's refuses root
      args: ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
    });
    context = await browser.newContext();
    context.setDefaultTimeout(20_000);
    front = await shop(service);
  });
  after(async () => {
    await browser?.close();
    await front?.stop();
    await service?.stop();
  });
  beforeEach(async () => {
    orderId = await service.order();
    front.reset();
  });
  afterEach(() => Promise.all(context.pages().map((page) => page.close())));

  const open = async (more, init) => {
    const page = await context.newPage();
    if (init) await page.addInitScript(init);
    await page.goto(front.page(orderId, more));
    await shows(page, /idle|unknown|paid/);
    return page;
  };

  const shows = (page, wanted) =>
    page.waitForFunction((text) => new RegExp(text).test(document.querySelector('#state').value), wanted.source);

  // Until one tab holds the order's lock and another one waits for it.
  const oneQueues = (page) =>
    page.evaluate(async () => {
      const last = performance.now() + 10_000;
      while ((await navigator.locks.query()).pending.length !== 1) {
        if (performance.now() > last) throw new Error('no tab waits for another');
        await new Promise((later) => setTimeout(later, 10));
      }
    });

  const pay = (page) => page.click('#pay');

  const kept = (page) => page.evaluate(() => ({ ...localStorage }));

  const oneIntent = () => {
    const sent = new Set(front.confirmations().map(({ key, body }) => key + body));
    assert.equal(sent.size, 1, JSON.stringify(front.confirmations()));
  };

  const isPaidOnce = async () => {
    assert.equal((await service.ask(`/api/orders/${orderId}`)).status, 'PAID');
    const keys = front.confirmations().map(({ key }) => key);
    const entries = [...(await service.audit('duplicate')), ...(await service.audit('mismatch'))];
    assert.deepEqual(entries.filter(({ idempotencyKey }) => keys.includes(idempotencyKey)), []);
  };

  test('a double click is one request', async () => {
    const page = await open();
    const release = front.hold();
    await page.dblclick('#pay');
    await front.asked(1);
    release();
    await shows(page, /paid/);
    assert.equal(front.confirmations().length, 1);
    assert.deepEqual(await kept(page), {});
    await isPaidOnce();
  });

  test('a page that is loaded anew in the middle of it sends the very same request, also for another card', async () => {
    const page = await open('&method=pm_ok');
    front.hold();
    await pay(page);
    await front.asked(1);
    const release = front.hold();
    await page.goto(front.page(orderId, '&method=pm_declined'));
    await shows(page, /unknown/);
    release();
    await pay(page);
    await shows(page, /paid/);
    assert.equal(front.confirmations().length, 2);
    oneIntent();
    assert.deepEqual(await kept(page), {});
    await isPaidOnce();
  });

  test('a page that keeps its key in sessionStorage has it after a reload, and another tab has not', async () => {
    const page = await open('&session');
    front.hold();
    await pay(page);
    await front.asked(1);
    await page.reload();
    await shows(page, /unknown/);
    const tab = await open('&session');
    await shows(tab, /idle/);
    front.hold()();
    await pay(page);
    await shows(page, /paid/);
    oneIntent();
  });

  test('two tabs take turns: the second asks under the key of the first, and both have the receipt', async () => {
    const [first, second] = [await open(), await open()];
    const release = front.hold();
    await Promise.all([pay(first), pay(second)]);
    await front.asked(1);
    await oneQueues(first);
    await Promise.all([shows(first, /sending/), shows(second, /sending/)]);
    release();
    await Promise.all([shows(first, /paid/), shows(second, /paid/)]);
    oneIntent();
    assert.ok(front.confirmations().every(({ atWork }) => atWork === 1), 'one at a time');
    assert.deepEqual(await kept(first), {});
    await isPaidOnce();
  });

  test('two tabs that begin at the same moment where there are no locks share one key, too', async () => {
    const [first, second] = [await open('&method=pm_slow_300', withoutLocks), await open('&method=pm_ok', withoutLocks)];
    await Promise.all([pay(first), pay(second)]);
    await Promise.all([shows(first, /paid/), shows(second, /paid/)]);
    oneIntent();
    assert.deepEqual(await kept(first), {});
    await isPaidOnce();
  });

  // The first tab sends after a tenth of a second. The second one begins right then, with another card.
  test('without locks no key gets two requests, and both tabs have the receipt', async () => {
    const clicks = (page, at) => page.evaluate((at) => setTimeout(() => document.querySelector('#pay').click(), at - Date.now()), at);
    for (let later = 98; later <= 116; later += 2) {
      orderId = await service.order();
      front.reset();
      const [first, second] = [await open('&method=pm_ok', withoutLocks), await open('&method=pm_slow_300', withoutLocks)];
      const at = Date.now() + 100;
      await Promise.all([clicks(first, at), clicks(second, at + later)]);
      await Promise.all([shows(first, /paid/), shows(second, /paid/)]);
      await first.waitForFunction(() => localStorage.length === 0);
      const sent = front.confirmations().map(({ key, body }) => [key, body]);
      assert.equal(new Set(sent.map(String)).size, new Set(sent.map(([key]) => key)).size, JSON.stringify(sent));
      await Promise.all([first.close(), second.close()]);
    }
  });

  for (const [where, init] of Object.entries({ 'with locks': undefined, 'without': withoutLocks })) {
    test(`a tab that only looks on learns that another one pays, and that it has paid (${where})`, async () => {
      const [paying, looking] = [await open('', init), await open('', init)];
      const release = front.hold();
      await pay(paying);
      await shows(looking, /unknown/);
      release();
      await Promise.all([shows(paying, /paid/), shows(looking, /paid/)]);
      assert.equal(front.confirmations().length, 1);
    });
  }

  test('a tab that is closed in the middle of it leaves its key to the one that waits', async () => {
    const [closed, waiting] = [await open(), await open()];
    front.hold();
    await pay(closed);
    await front.asked(1);
    await shows(waiting, /unknown/);
    await pay(waiting);
    front.hold()();
    await closed.close();
    await shows(waiting, /paid/);
    oneIntent();
    await isPaidOnce();
  });

  test('a page that is offline waits, and pays when it is online', async () => {
    const page = await open();
    await context.setOffline(true);
    await pay(page);
    await shows(page, /waiting/);
    await context.setOffline(false);
    await shows(page, /paid/);
    oneIntent();
    await isPaidOnce();
  });

  for (const [method, told] of [
    ['pm_lost_answer', /^Still paying … next try in \d s$/],
    ['pm_ok', /^Paid: [-0-9a-f]{36}$/],
    ['pm_declined', /^Not paid: .*declined/],
  ]) {
    test(`the README’s example, pasted, says what became of ${method}`, async () => {
      const page = await context.newPage();
      await page.goto(front.pasted(orderId, method));
      await page.waitForSelector('output[title=ready]', { state: 'attached' });
      await pay(page);
      await shows(page, told);
    });
  }

  test('a decline is shown, and the next card has a key of its own', async () => {
    const page = await open('&method=pm_declined');
    await pay(page);
    await shows(page, /refused/);
    await page.goto(front.page(orderId));
    await shows(page, /idle/);
    await pay(page);
    await shows(page, /paid/);
    assert.notEqual(front.confirmations()[0].key, front.confirmations()[1].key);
  });
});
