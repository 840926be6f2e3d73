import { mock } from 'node:test';

export const receipt = {
  orderId: 'o-1',
  status: 'PAID',
  paidAt: '2026-11-30T01:02:04.5Z',
  amount: 1000,
  currency: 'JPY',
  paymentId: 'p-1',
};

/** A fetch that answers by a script; the last answer is given for ever. It keeps what it was asked. */
export function scripted(...replies) {
  const requests = [];
  const fetch = async (request, { signal }) => {
    const reply = replies[Math.min(requests.length, replies.length - 1)];
    requests.push({
      method: request.method,
      url: request.url,
      key: request.headers.get('idempotency-key'),
      token: request.headers.get('authorization'),
      body: await request.text(),
      at: Date.now(),
    });
    if (reply.until) await Promise.race([reply.until, aborted(signal)]);
    if (reply.lost === 'reset') throw new TypeError('fetch failed');
    if (reply.lost === 'timeout') throw new DOMException('no answer within the time of a try', 'TimeoutError');
    if (reply.lost) return new Response(cut(reply.lost === 'cut' ? JSON.stringify(receipt) : '{"code":"payment_declined",'), {
      status: reply.lost === 'cut' ? 200 : 402,
    });
    const headers = new Headers(reply.headers);
    if (reply.retryAfterDate) {
      headers.set('retry-after', new Date(Date.now() + reply.retryAfterDate * 1000).toUTCString());
    }
    return new Response(reply.status === 204 ? null : reply.body, { status: reply.status, headers });
  };
  return { fetch, requests };
}

const aborted = (signal) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));

// A body that breaks off after its first half.
const cut = (text) => {
  let begun = false;
  return new ReadableStream({
    pull(stream) {
      if (begun) stream.error(new TypeError('terminated'));
      else stream.enqueue(new TextEncoder().encode(text.slice(0, text.length / 2)));
      begun = true;
    },
  });
};

export const paid = (members) => ({ status: 200, body: JSON.stringify({ ...receipt, ...members }) });

export const problem = (code, status, retry, headers) => ({
  status,
  headers: { 'content-type': 'application/problem+json', 'x-request-id': 'r-1', ...headers },
  body: JSON.stringify({ type: `/problems/${code}`, title: code, status, detail: `detail of ${code}`, code, retry }),
});

/** A storage like the browser's. */
export function storage() {
  const items = new Map();
  return {
    items,
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => void items.set(name, value),
    removeItem: (name) => void items.delete(name),
  };
}

/** Runs the work on a clock of its own: whenever nothing goes on but waiting, it is moved on. */
export async function inItsOwnTime(work) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: Date.UTC(2026, 10, 30, 1, 2, 3) });
  const clock = mock.method(performance, 'now', () => Date.now());
  try {
    let over = false;
    const result = work().finally(() => (over = true));
    result.catch(() => {});
    while (!over) {
      for (let turn = 0; turn < 10 && !over; turn++) await new Promise(setImmediate);
      if (!over) mock.timers.tick(50);
    }
    return await result;
  } finally {
    clock.mock.restore();
    mock.timers.reset();
  }
}
