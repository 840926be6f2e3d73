import assert from 'node:assert/strict';
import { after, before, suite } from 'node:test';
import { serving } from '../../client/ts/test/support/service.js';
import { inChromium, projector, shop, telephone, test } from './support/shop.js';

suite('how the pages look in Chromium', inChromium, () => {
  let open;
  before(async () => {
    open = await shop();
  });
  after(() => open?.stop());

  const on = (path, options, what) => open.on(path, options, what);

  test('what is seen on a telephone comes into view with the payment', () => on('/', telephone, async (visit) => {
    await visit.ordered();
    assert.ok((await visit.page.locator('#seen').boundingBox()).y > telephone.viewport.height);
    await visit.pay();
    await visit.page.waitForFunction(() => document.querySelector('#taken').getBoundingClientRect().bottom < innerHeight);
    await visit.picture('telephone-paid');
  }));

  for (const [width, height] of [[1024, 768], [1366, 768], [1920, 1080]]) {
    test(`money and arrows are seen at the same time on ${width}×${height}`, () => on('/', { viewport: { width, height } }, async (visit) => {
      await visit.ordered('double', 'gateway');
      await visit.pay();
      const [book, rows] = await Promise.all(['.book', '#rows'].map((name) => visit.page.locator(name).boundingBox()));
      assert.ok(book.y >= 0, `the book begins at ${book.y}`);
      assert.ok(rows.y > book.y && rows.y + rows.height <= height, `the arrows end at ${rows.y + rows.height}`);
      assert.equal(await visit.page.evaluate(() => new Set([...document.querySelectorAll('.cards > *')].map((card) => card.offsetTop)).size), 1);
      const cut = await visit.page.$$eval('.cards dd, .cards .chip', (words) => words.filter((word) => {
        const { right } = word.getBoundingClientRect();
        const { right: edge } = word.closest('dl').getBoundingClientRect();
        return right > edge + 1;
      }).map(({ textContent }) => textContent));
      assert.deepEqual(cut, []);
      await visit.picture(`${width}x${height}`);
    }));
  }

  test('the letters of the diagram are larger where an audience reads them', () => on('/', projector, async (visit) => {
    await visit.ordered();
    assert.ok(await visit.page.$eval('.step text', (words) => parseFloat(getComputedStyle(words).fontSize)) >= 22);
  }));

  for (const [language, paid, options] of [['en', 'Paid. Thank you!', telephone], ['ja', '支払いました。ありがとうございます！', projector]]) {
    test(`the shop speaks ${language}, and remembers it`, () => on(`/?lang=${language}`, options, async (visit) => {
      const { page } = visit;
      await visit.ordered('tabs', 'gateway');
      await visit.pay();
      assert.equal(await page.textContent('#told'), paid);
      assert.equal(await page.frameLocator('iframe').locator('#told').textContent(), paid, 'the second tab, too');
      await visit.picture(`shop-${language}`);
      await page.goto(`${open.service.url}/docs/idempotency`);
      assert.equal(await page.getAttribute('html', 'lang'), language);
    }));
  }

  for (const [name, path, options] of [
    ['by day', '/', {}],
    ['by night', '/', { colorScheme: 'dark' }],
    ['in Japanese on a telephone', '/?lang=ja', telephone],
  ]) {
    test(`axe-core finds nothing wrong with the shop, ${name}`, () => on(path, options, async (visit) => {
      await visit.live();
      assert.deepEqual(await visit.violations(), [], 'before an order');
      await visit.ordered('gateway', 'lose', 'reuse', 'tabs');
      await visit.pay();
      assert.deepEqual(await visit.violations(), [], 'after a payment');
      await visit.picture(`axe ${name}`.replaceAll(' ', '-'));
    }));
  }

  for (const path of ['/docs', '/docs?lang=ja', '/docs/idempotency', '/docs/idempotency?lang=ja', '/problems/payment_declined', '/problems/internal?lang=ja']) {
    test(`axe-core finds nothing wrong with ${path}`, () => on(path, {}, async (visit) => {
      assert.deepEqual(await visit.violations(), []);
      await visit.page.emulateMedia({ colorScheme: 'dark' });
      assert.deepEqual(await visit.violations(), [], 'by night');
      await visit.picture(path.slice(1).replace(/\W/g, '-'));
    }));
  }

  for (const [name, path, options] of [
    ['a telephone', '/', telephone], ['a Japanese telephone', '/?lang=ja', telephone], ['a projector', '/', projector],
  ]) {
    test(`nothing stands out of the page, or into its neighbour, on ${name}`, () => on(path, options, async (visit) => {
      await visit.ordered('gateway', 'double');
      await visit.pay();
      const { scroll, client } = await visit.page.evaluate(() => ({
        scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth,
      }));
      assert.equal(scroll, client);
      const cut = await visit.page.$$eval('.step text, .lane', (words) => words.filter((word) => {
        const { left, right } = word.getBoundingClientRect();
        const room = document.querySelector('#rows').getBoundingClientRect();
        return left < room.left - 1 || right > room.right + 1;
      }).map(({ textContent }) => textContent));
      assert.deepEqual(cut, []);
      const heads = await visit.page.$$eval('.lane', (names) => names.map((name) => name.getBoundingClientRect()).map(({ left, right }) => ({ left, right })));
      for (let n = 1; n < heads.length; n++) assert.ok(heads[n].left > heads[n - 1].right, `the heads ${n} and ${n + 1}`);
      await visit.page.locator('.sequence').scrollIntoViewIfNeeded();
      await visit.picture(name.replaceAll(' ', '-'));
    }));
    test(`nothing stands out of the reference on ${name}`, () => on(path, options, async ({ page, picture }) => {
      for (const path of ['/docs', '/docs/idempotency', '/problems/idempotency_in_progress', '/problems/invalid_request']) {
        await page.goto(open.service.url + path);
        const { scroll, client } = await page.evaluate(() => {
          for (const answer of document.querySelectorAll('details')) answer.open = true;
          return { scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth };
        });
        assert.equal(scroll, client, path);
        await picture(`${path.slice(1)} on ${name}`.replace(/\W/g, '-'));
      }
    }));
  }

  test('where there is no shop the page tells how to connect', async () => {
    const service = await serving({ KAKUTEI_AUTH: 'jwt', KAKUTEI_JWT_SECRET: 'only-for-development-0123456789abcdef' });
    for (const language of ['en', 'ja']) {
      const visit = await open.visit(`/?lang=${language}`, telephone, service.url);
      const { page } = visit;
      assert.equal(await page.locator('script, a[href="/lab"], #pay').count(), 0);
      assert.deepEqual(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
      assert.deepEqual(await visit.violations(), []);
      assert.deepEqual(visit.faults, []);
      await visit.picture(`without-a-shop-${language}`);
      await page.context().close();
    }
    await service.stop();
  });
});
