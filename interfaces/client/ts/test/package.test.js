import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

const here = new URL('../', import.meta.url);
const read = (name) => readFile(new URL(name, here));

test('the checkout client is smaller than 3 KB, gzipped', async (t) => {
  const size = gzipSync(await read('dist/checkout.min.js'), { level: 9 }).length;
  t.diagnostic(`${size} bytes`);
  assert.ok(size < 3000, `${size} bytes`);
});

test('it needs nothing at run time', async () => {
  const about = JSON.parse(await read('package.json'));
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies', 'bundleDependencies']) {
    assert.equal(about[kind], undefined);
  }
  assert.doesNotMatch(String(await read('dist/checkout.min.js')), /\bimport\b|\brequire\b/);
});

test('each module has its declarations', async () => {
  const built = await readdir(new URL('dist/', here));
  const modules = built.filter((name) => name.endsWith('.js') && !name.endsWith('.min.js'));
  assert.ok(modules.length > 5);
  for (const name of modules) assert.ok(built.includes(name.replace(/\.js$/, '.d.ts')), name);
});

test('a page that only confirms payments loads nothing of the posting key', async () => {
  assert.doesNotMatch(String(await read('dist/checkout.min.js')), /SHA-256|sales_invoice/);
});

test('it is imported by its name', async () => {
  assert.deepEqual(Object.keys(await import('kakutei-checkout')).sort(), ['Refused', 'UnknownOutcome', 'createCheckout']);
  assert.deepEqual(Object.keys(await import('kakutei-checkout/min')).sort(), ['Refused', 'UnknownOutcome', 'createCheckout']);
  const { postingKey } = await import('kakutei-checkout/posting-key');
  assert.equal(typeof postingKey, 'function');
});

test('the lock file names no host', async () => {
  assert.doesNotMatch(String(await read('package-lock.json')), /:\/\/|"resolved"/);
});
