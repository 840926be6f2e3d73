import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { createCheckout, Refused, UnknownOutcome } from '../dist/index.js';
import { postingKey } from '../dist/posting-key.js';
import { serving } from './support/service.js';
import { storage } from './support/stub.js';

/** A page at the real service, which counts its requests and may lose answers. */
const page = (service, { kept = storage(), lose = 0, ...options } = {}) => {
  const requests = [];
  const counted = async (request, init) => {
    requests.push({ key: request.headers.get('idempotency-key'), body: await request.clone().text() });
    const answer = await fetch(request, init);
    if (requests.length > lose) return answer;
    await answer.text();
    throw new TypeError('the answer is lost');
  };
  const checkout = createCheckout({ url: service.url, token: () => 'demo-alice', storage: kept, fetch: counted, ...options });
  return { ...checkout, requests, kept };
};

const yen = (paymentMethod) => ({ amount: 1000, currency: 'JPY', paymentMethod });

suite('against the service', () => {
  let service;
  before(async () => {
    service = await serving();
  });
  after(() => service.stop());

  /** What operators would have to know of these requests: a reused key, a second key for a paid order. */
  const audited = async (requests) => {
    const keys = requests.map(({ key }) => key);
    const entries = [...(await service.audit('duplicate')), ...(await service.audit('mismatch'))];
    return entries.filter(({ idempotencyKey }) => keys.includes(idempotencyKey));
  };

  test('a payment is confirmed, and the receipt is the order’s', async () => {
    const orderId = await service.order();
    const receipt = await page(service).confirmPayment(orderId, { amount: 1000, currency: 'JPY' });
    const order = await service.ask(`/api/orders/${orderId}`);
    assert.equal(order.status, 'PAID');
    assert.deepEqual(
      { paidAt: receipt.paidAt, paymentId: receipt.paymentId, amount: receipt.amount },
      { paidAt: order.paidAt, paymentId: order.paymentId, amount: 1000 },
    );
  });

  test('a page whose answers are lost twice pays once, and is told so by a replay', async () => {
    const orderId = await service.order();
    const { confirmPayment, requests } = page(service, { lose: 2 });
    const receipt = await confirmPayment(orderId, yen('pm_ok'));
    assert.equal(receipt.status, 'PAID');
    assert.equal(requests.length, 3);
    assert.equal(new Set(requests.map(({ key, body }) => key + body)).size, 1);
    assert.deepEqual(await audited(requests), []);
  });

  test('the provider takes the money and loses its answer: the page waits as advised, and pays once', async () => {
    const orderId = await service.order();
    const { confirmPayment, subscribe, requests } = page(service);
    const states = [];
    subscribe(orderId, ({ status }) => states.push(status));
    const began = performance.now();
    await confirmPayment(orderId, yen('pm_lost_answer'));
    assert.ok(performance.now() - began >= 1000, 'Retry-After was 1 at least');
    assert.equal(requests.length, 2);
    assert.ok(states.includes('waiting'));
  });

  test('a decline frees the order for another card, under a new key', async () => {
    const orderId = await service.order();
    const { confirmPayment, requests } = page(service);
    const refused = await confirmPayment(orderId, yen('pm_declined')).catch((error) => error);
    assert.ok(refused instanceof Refused);
    assert.equal(refused.problem.declineCode, 'card_declined');
    assert.equal((await confirmPayment(orderId, yen('pm_ok'))).status, 'PAID');
    assert.notEqual(requests[1].key, requests[0].key);
    assert.deepEqual(await audited(requests), []);
  });

  test('wrong money is refused with the code, and nothing is charged', async () => {
    const orderId = await service.order();
    await assert.rejects(page(service).confirmPayment(orderId, { amount: 999, currency: 'JPY' }), (error) => {
      assert.equal(error.problem.code, 'amount_mismatch');
      assert.equal(error.problem.retry, 'new-key');
      return true;
    });
    assert.equal((await service.ask(`/api/orders/${orderId}`)).status, 'PLACED');
  });

  test('what the page got wrong it may mend under the same key', async () => {
    const orderId = await service.order();
    const { confirmPayment, requests } = page(service);
    await assert.rejects(confirmPayment(orderId, { amount: 10.5, currency: 'JPY' }), (error) => error.problem.code === 'invalid_request');
    await confirmPayment(orderId, yen('pm_ok'));
    assert.equal(requests[1].key, requests[0].key);
  });

  test('a provider that never answers leaves the outcome unknown; the look-up says that it is under way', async () => {
    const orderId = await service.order();
    const { confirmPayment, outcome, state, requests } = page(service, { tries: 2 });
    const unknown = await confirmPayment(orderId, yen('pm_down')).catch((error) => error);
    assert.ok(unknown instanceof UnknownOutcome);
    assert.equal(unknown.cause.problem.code, 'outcome_unknown');
    assert.deepEqual(state(orderId), { status: 'unknown', key: unknown.key });
    assert.equal((await outcome(orderId)).status, 'IN_PROGRESS');
    assert.equal(unknown.key, requests[0].key);
  });

  test('a page whose answer was lost learns after a reload from the look-up that it has paid', async () => {
    const orderId = await service.order();
    const before = page(service, { lose: 1, tries: 1 });
    const unknown = await before.confirmPayment(orderId, yen('pm_ok')).catch((error) => error);
    assert.ok(unknown instanceof UnknownOutcome);
    const after = page(service, { kept: before.kept });
    assert.deepEqual(after.state(orderId), { status: 'unknown', key: unknown.key });
    const found = await after.outcome(orderId);
    assert.equal(found.status, 'SUCCEEDED');
    assert.deepEqual(after.state(orderId), { status: 'paid', receipt: found.response });
    assert.equal(before.kept.items.size, 0);
  });

  test('two pages without locks that confirm at the same moment send one request’s key and pay once', async () => {
    const orderId = await service.order();
    const kept = storage();
    const pages = [page(service, { kept }), page(service, { kept })];
    const receipts = await Promise.all(pages.map(({ confirmPayment }) => confirmPayment(orderId, yen('pm_slow_300'))));
    assert.deepEqual(receipts[0], receipts[1]);
    const requests = pages.flatMap((each) => each.requests);
    assert.equal(new Set(requests.map(({ key, body }) => key + body)).size, 1);
    assert.deepEqual(await audited(requests), []);
  });

  test('the posting key is the one under which the service books a document', async () => { // C100, C101
    for (const total of [999999, 1000000, 21000000, 9007199254740991, -5000]) {
      const document = {
        companyId: 'company-1', sourceDocumentType: 'adjustment', sourceDocumentId: `d${total}`, serviceDate: '2025-01-29', total,
      };
      const booked = await service.ask('/api/journal-entries/post', {
        token: 'demo-alice@company-1', method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(document),
      });
      assert.equal(booked.idempotencyKey, await postingKey(document));
    }
  });
});
