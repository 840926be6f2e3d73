import assert from 'node:assert/strict';
import { after, before, suite } from 'node:test';
import { serving } from '../../client/ts/test/support/service.js';
import { inChromium, projector, shop, test } from './support/shop.js';

suite('the shop in Chromium', inChromium, () => {
  let open;
  before(async () => {
    open = await shop();
  });
  after(() => open?.stop());

  const on = (path, options, what) => open.on(path, options, what);

  const contains = (arrows, ...wanted) => {
    let from = 0;
    for (const name of wanted) {
      const at = arrows.indexOf(name, from);
      assert.ok(at >= 0, `${name} is missing behind ${from} in ${arrows}`);
      from = at + 1;
    }
  };

  const count = (arrows, name) => arrows.filter((says) => says === name).length;

  // Each switch, how often money is taken with it, what becomes of the order, and what is seen in this order. Of two clicks
  // each has an order of its own: which of them is ahead of the other at a time nobody knows.
  for (const [name, charges, status, ...orders] of [
    ['double', 1, 'PAID', 'confirm reserve charge charged complete answer', 'confirm again busy problem again replay same'],
    ['lose', 1, 'PAID', 'confirm charged complete thrown again replay same'],
    ['slow', 1, 'PAID', 'confirm reserve charge charged complete answer'],
    ['decline', 0, 'PLACED', 'confirm charge declined refuse problem'],
    ['gateway', 1, 'PAID', 'charge silence abandon problem again takeover recharge known complete answer'],
    ['reload', 1, 'PAID', 'confirm reserve charge gone again'],
    ['tabs', 1, 'PAID', 'confirm charged complete answer again replay same'],
    ['reuse', 1, 'PAID', 'confirm charged complete answer other mismatch problem'],
    ['other', 1, 'PAID', 'confirm charged complete answer confirm problem'],
  ]) {
    test(`“${name}” ends with ${charges} charge(s) and the order ${status}`, () => on('/', projector, async (visit) => {
      await visit.ordered(name);
      await visit.pay();
      const arrows = await visit.arrows();
      for (const order of orders) contains(arrows, ...order.split(' '));
      assert.equal(await visit.charges(), charges);
      assert.equal(await visit.status(), status);
      await visit.picture(name);
      // What would have happened without it is shown where the lab runs it.
      const { page } = visit;
      assert.match(await page.textContent('#without'), name === 'decline' ? /Without a key, a second try/ : /charge|receipt|paid/);
      await page.click('#without a');
      await page.waitForURL('**/lab/*?storm=*');
      assert.ok(await page.locator('.naive .faults .bad').count() > 0, page.url());
      assert.equal(await page.locator('.own .faults .bad').count(), 0, page.url());
    }));
  }

  test('who has just come is told what to do, what it is about, and where to see what happens without it', () => on('/', projector, async (visit) => {
    const { page } = visit;
    await visit.live();
    assert.match(await page.textContent('.lead'), /the money is taken once/);
    assert.equal(await page.locator('#guide li:visible').count(), 3);
    assert.equal(await page.getAttribute('#guide a', 'href'), '/lab');
    await visit.picture('start');
    await visit.place();
    assert.equal(await page.isVisible('#guide'), false, 'it makes room for the arrows');
    await visit.pay();
    await page.click('#anew');
    assert.equal(await page.isVisible('#guide'), true);
  }));

  test('what comes after the payment is drawn behind what two tabs have done', () => on('/', {}, async (visit) => {
    await visit.page.addInitScript(() => { // the live view is behind the answers
      const { addEventListener } = EventSource.prototype;
      EventSource.prototype.addEventListener = function (name, told) {
        addEventListener.call(this, name, (event) => setTimeout(told, 400, event));
      };
    });
    await visit.page.reload();
    await visit.ordered('tabs', 'reuse');
    await visit.pay();
    const arrows = await visit.arrows();
    assert.deepEqual(arrows.slice(arrows.indexOf('other')), ['other', 'mismatch', 'problem']);
  }));

  test('without a switch it is one request, one charge and one answer', () => on('/', {}, async (visit) => {
    await visit.ordered();
    await visit.pay();
    assert.deepEqual(await visit.arrows(),
      ['place', 'placed', 'created', 'confirm', 'reserve', 'charge', 'charged', 'complete', 'answer']);
    assert.equal(await visit.charges(), 1);
    await visit.picture('plain');
  }));

  test('everything at once is still one charge', () => on('/', {}, async (visit) => {
    await visit.ordered('double', 'lose', 'tabs', 'gateway', 'reuse', 'other');
    await visit.pay();
    assert.equal(await visit.charges(), 1);
    assert.equal(await visit.status(), 'PAID');
    await visit.picture('everything');
  }));

  test('after a decline the order is paid with another card, under a key of its own, as the second attempt', () => on('/', {}, async (visit) => {
    await visit.ordered('decline');
    await visit.pay();
    await visit.turn('decline', false);
    await visit.pay();
    assert.equal(await visit.status(), 'PAID');
    assert.equal(await visit.charges(), 1);
    assert.equal(await visit.page.locator('#book li').count(), 2);
    assert.equal(count(await visit.arrows(), 'confirm'), 2);
  }));

  test('the money is gone before a slow gateway says so, and the lease runs down meanwhile', () => on('/', { colorScheme: 'dark' }, async (visit) => {
    await visit.ordered('slow');
    await visit.page.click('#pay');
    await visit.page.waitForSelector('#taken[data-charges="1"]');
    assert.equal(count(await visit.arrows(), 'charged'), 0, 'it has not answered yet');
    assert.equal(await visit.status(), 'PAYMENT_PENDING');
    const seconds = async () => Number(/\d+/.exec(await visit.page.textContent('#lease-left')));
    const first = await seconds();
    assert.ok(first <= 30 && first > 0, `${first} s of a lease of 30`);
    await visit.page.waitForFunction((first) => Number(/\d+/.exec(document.querySelector('#lease-left').textContent)) < first, first);
    await visit.picture('slow-in-the-middle');
    await visit.paid();
  }));

  test('the record shows the executions, and the answer that is stored', () => on('/', {}, async (visit) => {
    await visit.ordered('gateway');
    await visit.pay();
    assert.equal(await visit.page.textContent('#record .chip'), 'SUCCEEDED');
    assert.equal(await visit.page.textContent('#record .count'), '2');
    const stored = JSON.parse(await visit.page.textContent('#record pre'));
    const order = await open.service.ask(`/api/orders/${stored.orderId}`);
    assert.deepEqual([stored.status, stored.paidAt, stored.paymentId], ['PAID', order.paidAt, order.paymentId]);
  }));

  test('the gateway’s switches exclude each other', () => on('/', {}, async (visit) => {
    await visit.turn('slow');
    await visit.turn('decline');
    assert.equal(await visit.page.isChecked('#switch-slow'), false);
    assert.equal(await visit.page.isChecked('#switch-decline'), true);
  }));

  test('a new order begins from nothing, with the same switches', () => on('/', {}, async (visit) => {
    await visit.ordered('lose');
    await visit.pay();
    await visit.page.click('#anew');
    assert.deepEqual(await visit.arrows(), []);
    assert.equal(await visit.charges(), 0);
    await visit.place();
    await visit.pay();
    assert.equal(count(await visit.arrows(), 'thrown'), 1);
    assert.equal(await visit.charges(), 1);
  }));

  test('all of it can be done with the keyboard', () => on('/', {}, async (visit) => {
    const { page } = visit;
    await visit.live();
    const reach = async (id) => {
      for (let n = 0; n < 40; n++) {
        if (await page.evaluate((id) => document.activeElement.id === id, id)) return;
        await page.keyboard.press('Tab');
      }
      assert.fail(`#${id} is not reached`);
    };
    await reach('sencha1');
    await page.keyboard.press('Enter');
    await reach('place');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#pay:enabled');
    await reach('switch-lose');
    await page.keyboard.press('Space');
    await page.keyboard.press('Shift+Tab');
    await page.focus('#pay');
    await page.keyboard.press('Enter');
    await visit.paid();
    assert.equal(await visit.charges(), 1);
    assert.match(await page.textContent('#taken'), /1,500/, 'three of them');
  }));

  test('the arrows can be read as a list', () => on('/', {}, async (visit) => {
    await visit.ordered('lose');
    await visit.pay();
    await visit.page.click('details:has(#list) summary');
    const list = await visit.page.$$eval('#list li', (lines) => lines.map(({ innerText }) => innerText));
    assert.equal(list.length, (await visit.arrows()).length);
    assert.ok(list.includes('Kakutei ⇢ ✕ Client: 200 thrown away'), list.join('\n'));
  }));

  test('the language is switched in the middle of a story', () => on('/', {}, async (visit) => {
    const { page } = visit;
    await visit.ordered();
    await visit.pay();
    const before = await visit.arrows();
    await page.click('nav.languages a[lang=ja]');
    await page.waitForSelector('html[lang=ja]');
    assert.deepEqual(await visit.arrows(), before);
    assert.match(await page.textContent('#rows'), /支払い/);
  }));

  test('a page whose service has gone says that it sees nothing any more', async () => {
    const service = await serving();
    const visit = await open.visit('/', {}, service.url);
    await visit.live();
    assert.equal(await visit.page.textContent('#live'), '');
    await service.stop();
    await visit.page.waitForSelector('html[data-live=off]');
    assert.match(await visit.page.textContent('#live'), /not connected/);
    await visit.page.context().close();
  });

  test('a page that could not look on, since as many as can did, looks on when there is room', async () => {
    const service = await serving();
    const others = new AbortController();
    const look = () => fetch(`${service.url}/api/live?actor=bob`, { signal: others.signal });
    while ((await look()).ok);
    const visit = await open.visit('/', {}, service.url);
    await visit.page.waitForSelector('html[data-live=off]');
    others.abort();
    await visit.live();
    await visit.page.context().close();
    await service.stop();
  });

  test('a browser may have many tabs of the shop: those that nobody sees hold no connection', async () => {
    const context = await open.browser.newContext();
    context.setDefaultTimeout(20_000);
    const see = (page, hidden) => page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
    const pages = [];
    for (let n = 0; n < 8; n++) {
      for (const page of pages) await see(page, true);
      const page = await context.newPage();
      await page.goto(open.service.url);
      await page.waitForSelector('html[data-live=on]');
      pages.push(page);
    }
    await pages[0].waitForSelector('html[data-live=off]');
    await see(pages[0], false);
    await pages[0].waitForSelector('html[data-live=on]');
    await context.close();
  });

  test('a page that is left while it pays goes on looking until it has paid', () => on('/', {}, async (visit) => {
    const { page } = visit;
    await visit.ordered('slow');
    await page.click('#pay');
    await page.waitForSelector('#taken[data-charges="1"]');
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await visit.paid();
    assert.equal(count(await visit.arrows(), 'charged'), 1);
    await page.waitForSelector('html[data-live=off]');
  }));

  test('no other host is asked for anything, and the page weighs less than 100 KB', () => on('/', {}, async (visit) => {
    await visit.ordered('lose', 'tabs');
    const weight = await visit.page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
      .filter(({ name }) => !name.includes('/api/')).reduce((sum, { transferSize }) => sum + transferSize, 0));
    await visit.pay();
    const { host } = new URL(open.service.url);
    assert.deepEqual(visit.requests.filter((url) => new URL(url).host !== host), []);
    assert.ok(weight > 10_000 && weight < 100_000, `${weight} bytes, not even packed`);
  }));
});
