import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createCheckout, Refused, UnknownOutcome } from '../dist/index.js';
import { inItsOwnTime, paid, problem, receipt, scripted, storage } from './support/stub.js';

const payment = { amount: 1000, currency: 'JPY', paymentMethod: 'pm_a' };
const other = { amount: 1000, currency: 'JPY', paymentMethod: 'pm_b' };
const unknown = problem('outcome_unknown', 503, 'same-key', { 'retry-after': '1' });
const declined = problem('payment_declined', 402, 'new-key');

/** A page: what createCheckout makes, its stub, and the states it has rendered for order o-1. A reload keeps the storage. */
const page = (kept, ...replies) => {
  const stub = scripted(...replies);
  const checkout = createCheckout({ url: 'http://stub/', token: () => 'demo-alice', storage: kept, fetch: stub.fetch, tries: 3 });
  const states = [];
  checkout.subscribe('o-1', (state) => states.push(state));
  return { ...checkout, requests: stub.requests, states, pay: (as = payment, options) => checkout.confirmPayment('o-1', as, options) };
};

const statuses = (states) => states.map(({ status }) => status);

suite('one key per order', () => {
  test('a double click is one request, and both callers get the same promise', async () => {
    const { pay, requests } = page(storage(), paid());
    const first = pay();
    assert.equal(pay(other), first);
    assert.deepEqual(await first, receipt);
    assert.equal(requests.length, 1);
    assert.equal(requests[0].url, 'http://stub/api/orders/o-1/confirm-payment');
    assert.equal(requests[0].token, 'Bearer demo-alice');
  });

  test('a click after the receipt asks nobody', async () => {
    const { pay, requests } = page(storage(), paid());
    await pay();
    assert.deepEqual(await pay(other), receipt);
    assert.equal(requests.length, 1);
  });

  test('two orders have two keys', async () => {
    const stub = scripted(paid(), paid({ orderId: 'o-2' }));
    const { confirmPayment } = createCheckout({ url: 'http://stub', token: () => 't', storage: storage(), fetch: stub.fetch });
    await Promise.all([confirmPayment('o-1', payment), confirmPayment('o-2', payment)]);
    assert.notEqual(stub.requests[0].key, stub.requests[1].key);
  });

  test('after a reload the very request of before goes out, whatever the page asks for now', () =>
    inItsOwnTime(async () => {
      const kept = storage();
      const before = page(kept, { lost: 'reset' });
      await assert.rejects(before.pay(), UnknownOutcome);
      const after = page(kept, paid());
      assert.deepEqual(after.states, [{ status: 'unknown', key: before.requests[0].key }]);
      await after.pay(other);
      assert.equal(after.requests[0].key, before.requests[0].key);
      assert.equal(after.requests[0].body, '{"amount":1000,"currency":"JPY","paymentMethod":"pm_a"}');
    }));

  test('a page that is closed while its request is under way has left the key behind', async () => {
    const kept = storage();
    const closed = page(kept, { until: new Promise(() => {}) });
    closed.pay().catch(() => {});
    await until(() => closed.requests.length === 1);
    const after = page(kept, paid());
    assert.equal(after.states[0].status, 'unknown');
    await after.pay();
    assert.equal(after.requests[0].key, closed.requests[0].key);
  });

  test('a receipt drops the key', async () => {
    const kept = storage();
    await page(kept, paid()).pay();
    assert.equal(kept.items.size, 0);
  });

  test('a final refusal lets the next call have a new key and another body', async () => {
    const kept = storage();
    const { pay, requests } = page(kept, declined, paid());
    await assert.rejects(pay(), Refused);
    assert.equal(kept.items.size, 0);
    await pay(other);
    assert.notEqual(requests[1].key, requests[0].key);
    assert.equal(requests[1].body, '{"amount":1000,"currency":"JPY","paymentMethod":"pm_b"}');
  });

  test('a request that was wrong has not used its key: the mended one goes out under it', async () => {
    const { pay, requests } = page(storage(), problem('invalid_request', 400, 'after-fix'), paid());
    await assert.rejects(pay({ ...payment, amount: -1 }), Refused);
    await pay();
    assert.equal(requests[1].key, requests[0].key);
    assert.equal(requests[1].body, '{"amount":1000,"currency":"JPY","paymentMethod":"pm_a"}');
  });

  for (const advice of ['never', 'ask-them']) {
    test(`a refusal that advises "${advice}" leaves the request as it was`, async () => {
      const { pay, requests } = page(storage(), problem('later_odd', 409, advice), paid());
      await assert.rejects(pay(), Refused);
      await pay(other);
      assert.equal(requests[1].key, requests[0].key);
      assert.equal(requests[1].body, requests[0].body);
    });
  }

  test('a token that is over after a lost answer leaves the outcome unknown, and the request as it was', () =>
    inItsOwnTime(async () => {
      const { pay, requests, state } = page(storage(), { lost: 'reset' }, problem('unauthenticated', 401, 'after-fix'), paid());
      await assert.rejects(pay(), UnknownOutcome);
      assert.equal(state('o-1').status, 'unknown');
      await pay(other);
      assert.equal(requests.length, 3);
      assert.deepEqual(requests[2].body, requests[0].body);
      assert.equal(requests[2].key, requests[0].key);
    }));

  test('the same holds across a reload: what was sent before it may have had its effect', () =>
    inItsOwnTime(async () => {
      const kept = storage();
      await assert.rejects(page(kept, { lost: 'reset' }).pay(), UnknownOutcome);
      await assert.rejects(page(kept, problem('unauthenticated', 401, 'after-fix')).pay(), UnknownOutcome);
      assert.equal(kept.items.size, 1);
    }));

  test('members that the contract does not know are not sent', async () => {
    const { pay, requests } = page(storage(), paid());
    await pay({ currency: 'JPY', total: 5, amount: 1000 });
    assert.equal(requests[0].body, '{"amount":1000,"currency":"JPY"}');
  });
});

suite('storage', () => {
  const broken = () => {
    throw new DOMException('no', 'SecurityError');
  };

  test('one that is forbidden costs only what a reload would need', () =>
    inItsOwnTime(async () => {
      const kept = { getItem: broken, setItem: broken, removeItem: broken };
      const { pay, requests } = page(kept, { lost: 'reset' }, { lost: 'reset' }, { lost: 'reset' }, declined, paid());
      await assert.rejects(pay(), UnknownOutcome);
      await assert.rejects(pay(other), Refused);
      assert.equal(new Set(requests.map(({ key, body }) => key + body)).size, 1);
      await pay(other);
      assert.notEqual(requests[4].key, requests[0].key);
    }));

  test('one that is full costs no more', () =>
    inItsOwnTime(async () => {
      const { pay, requests } = page({ ...storage(), setItem: broken }, { lost: 'reset' }, paid());
      await pay();
      assert.equal(requests[0].key, requests[1].key);
    }));

  test('none at all costs no more', async () => {
    const { pay } = page(undefined, paid());
    assert.deepEqual(await pay(), receipt);
  });

  for (const text of ['', '{', 'null', '7', '{"key":"a b","body":"{}","sent":true}', '{"key":7,"sent":true}']) {
    test(`${text || 'an empty text'} is no intent`, async () => {
      const kept = storage();
      kept.items.set('kakutei:o-1', text);
      const { pay, requests, states } = page(kept, paid());
      assert.deepEqual(states, [{ status: 'idle' }]);
      await pay();
      assert.equal(requests[0].body, '{"amount":1000,"currency":"JPY","paymentMethod":"pm_a"}');
    });
  }

  for (const body of ['', '{"amount":1000,"curr', 'null', '"x"', 7, null, {}, ['{}'], true]) {
    test(`a request that reads ${JSON.stringify(body)} is none, and its key is kept`, async () => {
      const kept = storage();
      kept.items.set('kakutei:o-1', JSON.stringify({ key: 'k', body, sent: true }));
      const { pay, requests, states } = page(kept, paid());
      assert.deepEqual(states, [{ status: 'unknown', key: 'k' }]);
      await pay();
      const { method, key, body: sent } = requests[0];
      assert.deepEqual([method, key], ['POST', 'k']);
      assert.equal(sent, '{"amount":1000,"currency":"JPY","paymentMethod":"pm_a"}');
    });
  }
});

// Another tab may have left it, or be about to send it.
suite('a request that stands there and has not been sent', () => {
  const left = { key: 'k', body: '{"amount":1000,"currency":"JPY","paymentMethod":"pm_a"}' };
  const keeping = (intent) => {
    const kept = storage();
    kept.items.set('kakutei:o-1', JSON.stringify(intent));
    return kept;
  };

  test('goes out under its key if it is the same', async () => {
    const { pay, requests } = page(keeping(left), paid());
    await pay();
    assert.equal(requests[0].key, 'k');
  });

  test('does not share its key with another one', async () => {
    const { pay, requests } = page(keeping(left), paid());
    await pay(other);
    assert.notEqual(requests[0].key, 'k');
    assert.equal(requests[0].body, '{"amount":1000,"currency":"JPY","paymentMethod":"pm_b"}');
  });

  test('has been sent by another tab meanwhile: then it goes out here, too, and is kept', async (t) => {
    let tell;
    globalThis.addEventListener = (_, listener) => (tell = listener);
    t.after(() => delete globalThis.addEventListener);
    const kept = keeping(left);
    const { pay, requests } = page(kept, { lost: 'reset' });
    const paying = pay(other).catch(() => {});
    tell({ key: 'kakutei:o-1', oldValue: JSON.stringify(left), newValue: JSON.stringify({ ...left, sent: true }) });
    await until(() => requests.length === 1);
    assert.equal(requests[0].key, 'k');
    assert.equal(requests[0].body, left.body);
    assert.deepEqual(JSON.parse(kept.items.get('kakutei:o-1')), { ...left, sent: true });
    await paying;
  });
});

suite('what the page renders', () => {
  test('idle, sending, waiting second by second, sending, paid', () =>
    inItsOwnTime(async () => {
      const wait = problem('idempotency_in_progress', 409, 'same-key', { 'retry-after': '3' });
      const { pay, states } = page(storage(), wait, paid());
      await pay();
      const seconds = states.filter(({ status }) => status === 'waiting').map((state) => state.seconds);
      assert.deepEqual([...new Set(seconds)].slice(-3), [3, 2, 1]);
      assert.deepEqual([...new Set(statuses(states))], ['idle', 'sending', 'waiting', 'paid']);
      assert.deepEqual(states.filter(({ status }) => status === 'sending').at(-1), { status: 'sending', tries: 2 });
      assert.deepEqual(states.at(-1), { status: 'paid', receipt });
    }));

  test('unknown, with the key to ask for', () =>
    inItsOwnTime(async () => {
      const { pay, states, requests } = page(storage(), unknown);
      const error = await pay().catch((thrown) => thrown);
      assert.deepEqual(states.at(-1), { status: 'unknown', key: requests[0].key });
      assert.equal(error.key, requests[0].key);
      assert.equal(error.name, 'UnknownOutcome');
      assert.equal(error.retryAfter, 1000);
    }));

  test('refused, with the problem', async () => {
    const { pay, states } = page(storage(), declined);
    await assert.rejects(pay(), { name: 'Refused' });
    assert.equal(states.at(-1).status, 'refused');
    assert.equal(states.at(-1).problem.code, 'payment_declined');
  });

  test('a listener that fails changes nothing but the page’s own log', async (t) => {
    const reported = [];
    const queue = queueMicrotask;
    t.mock.method(globalThis, 'queueMicrotask', (work) => queue(() => {
      try {
        work();
      } catch (error) {
        reported.push(error.message);
      }
    }));
    const { pay, subscribe, states } = page(storage(), paid());
    subscribe('o-1', () => {
      throw new Error('cannot render');
    });
    assert.deepEqual(await pay(), receipt);
    assert.equal(states.at(-1).status, 'paid');
    assert.ok(reported.length > 1 && reported.every((message) => message === 'cannot render'));
  });

  test('a listener that has gone is told nothing', async () => {
    const { pay, subscribe } = page(storage(), paid());
    const told = [];
    subscribe('o-1', ({ status }) => told.push(status))();
    await pay();
    assert.deepEqual(told, ['idle']);
  });

  test('a page may pay again from within the refusal', async () => {
    const { pay, subscribe, requests } = page(storage(), declined, paid());
    const again = new Promise((resolve) => {
      subscribe('o-1', ({ status }) => status === 'refused' && resolve(pay(other)));
    });
    await assert.rejects(pay(), Refused);
    assert.deepEqual(await again, receipt);
    assert.equal(requests.length, 2);
  });

  test('the state is the same object until it changes', async () => {
    const { pay, state } = page(storage(), paid());
    assert.equal(state('o-1'), state('o-1'));
    await pay();
    assert.equal(state('o-1'), state('o-1'));
  });
});

suite('AbortSignal', () => {
  const pending = () => ({ until: new Promise(() => {}) });

  test('aborted beforehand, nothing is sent', async () => {
    const { pay, requests } = page(storage(), paid());
    const reason = new Error('gone');
    await assert.rejects(pay(payment, { signal: AbortSignal.abort(reason) }), reason);
    assert.equal(requests.length, 0);
  });

  test('the caller gets its reason at once, the page that the outcome is unknown, and the key stays', async () => {
    const kept = storage();
    const leaving = new AbortController();
    const { pay, requests, states } = page(kept, pending(), paid());
    const call = pay(payment, { signal: leaving.signal });
    await until(() => requests.length === 1);
    leaving.abort();
    await assert.rejects(call, { name: 'AbortError' });
    await until(() => states.at(-1).status === 'unknown');
    assert.deepEqual([...new Set(statuses(states))], ['idle', 'sending', 'unknown'], 'no next try is announced');
    await pay(other);
    assert.equal(requests[1].key, requests[0].key);
    assert.equal(requests[1].body, requests[0].body);
  });

  test('it ends a wait, too', async () => {
    const leaving = new AbortController();
    const { pay, requests, states } = page(storage(), unknown);
    const call = pay(payment, { signal: leaving.signal });
    await until(() => states.at(-1).status === 'waiting');
    leaving.abort();
    await assert.rejects(call, { name: 'AbortError' });
    await until(() => states.at(-1).status === 'unknown');
    assert.equal(requests.length, 1);
  });

  test('while another caller waits, the payment goes on', async () => {
    let answer;
    const leaving = new AbortController();
    const { pay, requests } = page(storage(), { ...paid(), until: new Promise((resolve) => (answer = resolve)) });
    const left = pay(payment, { signal: leaving.signal });
    const stayed = pay(payment);
    await until(() => requests.length === 1);
    leaving.abort();
    await assert.rejects(left, { name: 'AbortError' });
    answer();
    assert.deepEqual(await stayed, receipt);
  });

  test('a call right after the last caller has left does not inherit its end', async () => {
    const leaving = new AbortController();
    const { pay, requests, states } = page(storage(), pending(), paid());
    const left = pay(payment, { signal: leaving.signal });
    await until(() => requests.length === 1);
    leaving.abort();
    const next = pay(payment);
    await assert.rejects(left, { name: 'AbortError' });
    assert.deepEqual(await next, receipt);
    assert.equal(requests[1].key, requests[0].key);
    assert.deepEqual([...new Set(statuses(states))], ['idle', 'sending', 'paid'], 'the one that was left says no more');
  });

  test('aborted before anything was sent, there is nothing to ask for', async () => {
    const stub = scripted(paid());
    const leaving = new AbortController();
    const checkout = createCheckout({ url: 'http://stub', token: () => new Promise(() => {}), storage: storage(), fetch: stub.fetch });
    const call = checkout.confirmPayment('o-1', payment, { signal: leaving.signal });
    leaving.abort();
    await assert.rejects(call, { name: 'AbortError' });
    await until(() => checkout.state('o-1').status === 'idle');
    assert.equal(stub.requests.length, 0);
  });
});

suite('the token', () => {
  test('it is asked for before each try', () =>
    inItsOwnTime(async () => {
      let n = 0;
      const stub = scripted(unknown, paid());
      const checkout = createCheckout({ url: 'http://stub', token: async () => `t-${++n}`, storage: storage(), fetch: stub.fetch });
      await checkout.confirmPayment('o-1', payment);
      assert.deepEqual(stub.requests.map(({ token }) => token), ['Bearer t-1', 'Bearer t-2']);
    }));

  test('without one nothing is sent, and the page’s own error comes through', async () => {
    const stub = scripted(paid());
    const error = new Error('not logged in');
    const token = () => {
      throw error;
    };
    const checkout = createCheckout({ url: 'http://stub', token, storage: storage(), fetch: stub.fetch });
    await assert.rejects(checkout.confirmPayment('o-1', payment), error);
    assert.equal(checkout.state('o-1').status, 'idle');
    assert.equal(stub.requests.length, 0);
  });

  test('a card chosen after such an error is the one that is sent', async () => {
    let token = () => Promise.reject(new Error('not logged in'));
    const stub = scripted(paid());
    const checkout = createCheckout({ url: 'http://stub', token: () => token(), storage: storage(), fetch: stub.fetch });
    await assert.rejects(checkout.confirmPayment('o-1', payment), /not logged in/);
    token = () => 't';
    await checkout.confirmPayment('o-1', other);
    assert.match(stub.requests[0].body, /pm_b/);
  });
});

suite('the outcome look-up', () => {
  const outcome = (members) => ({ status: 200, body: JSON.stringify({ operation: 'ConfirmPayment', executions: 1, ...members }) });
  const lost = [{ lost: 'reset' }, { lost: 'reset' }, { lost: 'reset' }];

  test('a payment that went through makes the page paid, without being sent again', () =>
    inItsOwnTime(async () => {
      const kept = storage();
      const { pay, outcome: ask, requests, state } = page(kept, ...lost, outcome({ status: 'SUCCEEDED', response: receipt }));
      const { key } = await pay().catch((error) => error);
      const found = await ask('o-1');
      assert.deepEqual(found.response, receipt);
      assert.equal(requests[3].method, 'GET');
      assert.equal(requests[3].url, `http://stub/api/idempotency-keys/${key}?operation=ConfirmPayment`);
      assert.equal(requests[3].key, null);
      assert.deepEqual(state('o-1'), { status: 'paid', receipt });
      assert.equal(kept.items.size, 0);
    }));

  test('one that was refused makes it refused, and the next call has a new key', () =>
    inItsOwnTime(async () => {
      const refusal = JSON.parse(declined.body);
      const { pay, outcome: ask, requests, state } = page(storage(), ...lost, outcome({ status: 'FAILED', problem: refusal }), paid());
      await pay().catch(() => {});
      await ask('o-1');
      assert.deepEqual(state('o-1'), { status: 'refused', problem: refusal });
      await pay();
      assert.notEqual(requests[4].key, requests[0].key);
    }));

  for (const [name, reply, found] of [
    ['one that is under way', outcome({ status: 'IN_PROGRESS' }), 'IN_PROGRESS'],
    ['one without a record', problem('not_found', 404, 'after-fix'), undefined],
  ]) {
    test(`${name} stays unknown, under its key`, () =>
      inItsOwnTime(async () => {
        const { pay, outcome: ask, requests, state } = page(storage(), ...lost, reply, paid());
        await pay().catch(() => {});
        assert.equal((await ask('o-1'))?.status, found);
        assert.equal(state('o-1').status, 'unknown');
        await pay(other);
        assert.equal(requests[4].key, requests[0].key);
      }));
  }

  test('it is tried again like everything, and says which key is unknown', () =>
    inItsOwnTime(async () => {
      const { outcome: ask, requests } = page(storage(), unknown);
      await assert.rejects(ask('o-1', 'k/1'), { name: 'UnknownOutcome', key: 'k/1' });
      assert.equal(requests.length, 3);
      assert.match(requests[0].url, /idempotency-keys\/k%2F1\?/);
    }));

  test('a refusal of the look-up itself is no refusal of the payment', async () => {
    const { outcome: ask, state } = page(storage(), problem('unauthenticated', 401, 'after-fix'));
    await assert.rejects(ask('o-1', 'k'), { name: 'Refused', status: 401 });
    assert.equal(state('o-1').status, 'idle');
  });

  test('without a key there is nothing to ask', async () => {
    const { outcome: ask, requests } = page(storage(), unknown);
    assert.equal(await ask('o-1'), undefined);
    assert.equal(requests.length, 0);
  });

  test('a proxy’s page, and another order’s receipt, are no outcome', async () => {
    for (const reply of [
      { status: 200, body: '<html>Log in</html>' },
      outcome({ status: 'SUCCEEDED', response: { ...receipt, orderId: 'o-2' } }),
      outcome({ status: 'SUCCEEDED' }),
      outcome({ status: 'FAILED' }),
      outcome({ status: 'DONE' }),
    ]) {
      const { outcome: ask, state } = page(storage(), reply);
      await assert.rejects(ask('o-1', 'k'), UnknownOutcome);
      assert.equal(state('o-1').status, 'idle');
    }
  });

  test('a signal ends it', async () => {
    const leaving = new AbortController();
    const { outcome: ask, requests } = page(storage(), { until: new Promise(() => {}) });
    const call = ask('o-1', 'k', { signal: leaving.signal });
    await until(() => requests.length === 1);
    leaving.abort();
    await assert.rejects(call, { name: 'AbortError' });
  });
});


async function until(holds) {
  while (!holds()) await new Promise(setImmediate);
}
