import assert from 'node:assert/strict';
import { after, before, suite } from 'node:test';
import { inChromium, projector, shop, telephone, test } from './support/shop.js';

suite('the lab in Chromium', inChromium, () => {
  let open;
  before(async () => {
    open = await shop();
  });
  after(() => open?.stop());

  const on = (path, options, what) => open.on(path, options, what);

  /** The charges that a design's page shows: the design's, Kakutei's. */
  const charges = (page) => page.$$eval('.charges b', (counts) => counts.map(({ textContent }) => Number(textContent)));

  const unfold = (page) => page.$$eval('details', (all) => all.forEach((one) => { one.open = true; }));

  // Each design, with its own charges in its own storm. Kakutei's are beside them.
  for (const [name, count] of Object.entries({
    nokey: 2, lookup: 2, nofingerprint: 1, noactor: 1, apart: 2, nofence: 2, newgatewaykey: 2, onlyrecord: 2, onlyaggregate: 2,
    onlyconstraint: 2,
  })) {
    test(`“${name}” fails with ${count} charge(s) beside Kakutei's one`, () => on(`/lab/${name}`, projector, async ({ page, picture }) => {
      assert.deepEqual(await charges(page), [count, 1]);
      assert.equal(await page.locator('.naive .faults .bad').count() > 0, true);
      assert.equal(await page.locator('.beside .own .faults .bad').count(), 0);
      await picture(`lab-${name}`);
    }));
  }

  test('the keyboard leads from the table to a run and to its code', () => on('/lab', {}, async ({ page }) => {
    const cell = page.locator('td.home a').first();
    await cell.focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/lab/nokey?storm=double_click');
    assert.equal(await page.locator('mark').first().isVisible(), false);
    await page.locator('summary').focus();
    await page.keyboard.press('Enter');
    const wrong = page.locator('mark').first();
    await wrong.waitFor({ state: 'visible' });
    assert.match(await wrong.textContent(), /WRONG/);
  }));

  test('another storm is one click away', () => on('/lab/nofence', {}, async ({ page }) => {
    await page.click('.choice a[href$="=lost_answer"]');
    await page.waitForURL('**/lab/nofence?storm=lost_answer');
    assert.deepEqual(await charges(page), [1, 1]);
  }));

  test('the language changes, and the design stays', () => on('/lab/nofence', {}, async ({ page }) => {
    await page.click('nav.languages a[lang=ja]');
    await page.waitForSelector('html[lang=ja]');
    assert.match(await page.textContent('h1'), /フェンス/);
  }));

  test('the three places show what held in each', () => on('/lab/places', projector, async ({ page, picture }) => {
    const held = await page.$$eval('.places tbody tr', (rows) => rows.slice(0, 5)
      .map((row) => [...row.querySelectorAll('td')].map(({ className }) => className === 'good')));
    assert.deepEqual(held, [
      [true, true, true], // a double click
      [true, true, true], // a lost answer
      [false, true, true], // another amount
      [false, false, true], // a second operation
      [false, true, true], // ten thousand keys
    ]);
    await picture('lab-places');
  }));

  for (const [name, query, options] of [
    ['by day', '', {}],
    ['by night', '', { colorScheme: 'dark' }],
    ['in Japanese on a telephone', '?lang=ja', telephone],
  ]) {
    test(`axe-core finds nothing wrong with the lab, ${name}`, () => on(`/lab${query}`, options, async ({ page, violations, picture }) => {
      for (const path of ['/lab', '/lab/onlyaggregate', '/lab/places']) {
        await page.goto(open.service.url + path);
        await unfold(page);
        assert.deepEqual(await violations(), [], path);
        await picture(`axe ${path.slice(1)} ${name}`.replace(/\W/g, '-'));
      }
    }));
  }

  for (const [name, language, options] of [
    ['a telephone', 'en', telephone], ['a Japanese telephone', 'ja', telephone],
    ['a projector', 'en', projector], ['a Japanese projector', 'ja', projector],
  ]) {
    test(`nothing stands out of the lab on ${name}`, () => on(`/lab?lang=${language}`, options, async ({ page, picture }) => {
      for (const path of ['/lab', '/lab/apart', '/lab/nofence', '/lab/places']) {
        await page.goto(open.service.url + path);
        await unfold(page);
        const { scroll, client } = await page.evaluate(() => ({
          scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth,
        }));
        assert.equal(scroll, client, path);
        const cut = await page.$$eval('.timeline span', (words) => words.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)
          .map(({ textContent }) => textContent));
        assert.deepEqual(cut, [], path);
        await picture(`${path.slice(1)} on ${name}`.replace(/\W/g, '-'));
      }
    }));
  }

  test('the lab runs no script, asks no other host, and weighs less than 100 KB', () => on('/lab', {}, async ({ page, requests }) => {
    let weight = 0;
    for (const path of ['/lab', '/lab/nokey', '/lab/places']) {
      await page.goto(open.service.url + path);
      assert.equal(await page.locator('script').count(), 0, path);
      weight = Math.max(weight, await page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
        .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)));
    }
    const { host } = new URL(open.service.url);
    assert.deepEqual(requests.filter((url) => new URL(url).host !== host), []);
    assert.ok(weight > 10_000 && weight < 100_000, `${weight} bytes, not even packed`);
  }));
});
