import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { isKey, newKey } from '../dist/key.js';
import { NoPostingKey, postingKey, postingKeyText } from '../dist/posting-key.js';
import { published } from './support/published.js';

test('the published keys are keys, and the others are not', async () => {
  const texts = await published('idempotency-keys');
  assert.ok(texts.some(({ key }) => key) && texts.some(({ key }) => !key));
  for (const { text, key } of texts) assert.equal(isKey(text), key, JSON.stringify(text));
});

test('what is no text is no key', () => {
  for (const value of [undefined, null, 1, {}, ['k']]) assert.equal(isKey(value), false);
});

test('a new key is a key, and another one each time', () => {
  const keys = Array.from({ length: 1000 }, newKey);
  assert.ok(keys.every(isKey));
  assert.equal(new Set(keys).size, 1000);
});

test('the README’s posting key is what its example makes', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const [, example, key] = /^await (postingKey\([^)]*\)) \/\/ (\w+)$/m.exec(readme);
  assert.equal(await new Function('postingKey', `return ${example}`)(postingKey), key);
});

// C98, C100, C101: the service and the Go client make the same keys of the same inputs.
test('the published documents have their posting keys, and the others are refused for the same field', async () => {
  const rows = await published('posting-keys');
  assert.ok(rows.length > 100);
  for (const { input, text, key, field } of rows) {
    if (field) {
      await assert.rejects(postingKey(input), (error) => error instanceof NoPostingKey && error.field === field, JSON.stringify(input));
      continue;
    }
    assert.equal(postingKeyText(input), text);
    assert.equal(await postingKey(input), key);
  }
});

test('no total is written with an exponent, and minus nought is no total', () => { // C101
  const document = { companyId: 'c', sourceDocumentType: 'adjustment', sourceDocumentId: 'd', serviceDate: '2025-01-29' };
  for (const total of [999999, 1000000, 2100000, 21000000, 9007199254740991, -9007199254740991]) {
    assert.match(postingKeyText({ ...document, total }), new RegExp(`\\|${total}$`));
    assert.doesNotMatch(postingKeyText({ ...document, total }), /e\+/);
  }
  assert.throws(() => postingKeyText({ ...document, total: -0 }), { field: 'total' });
  assert.throws(() => postingKeyText({ ...document, total: NaN }), { field: 'total' });
});
