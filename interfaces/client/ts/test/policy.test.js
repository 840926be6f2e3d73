import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createCheckout, Refused, UnknownOutcome } from '../dist/index.js';
import { backoff, retryAfter } from '../dist/policy.js';
import { published } from './support/published.js';
import { inItsOwnTime, paid, problem, receipt, scripted, storage } from './support/stub.js';

const { problems, answers, waits, scripts } = await published('retry-decisions');
const payment = { amount: 1000, currency: 'JPY' };

const confirmed = async (stub, options) => {
  const checkout = createCheckout({ url: 'http://stub', token: () => 'demo-alice', storage: storage(), ...stub, ...options });
  const began = Date.now();
  const end = await checkout.confirmPayment('o-1', payment).catch((error) => error);
  return { end, took: Date.now() - began };
};

const decisionOf = (end) =>
  end instanceof Refused ? 'refused' : end instanceof UnknownOutcome ? 'unknown' : end.status === 'PAID' ? 'done' : end;

suite('the published problems are obeyed', () => {
  for (const { code, status, retry, decision } of problems) {
    test(code, () =>
      inItsOwnTime(async () => {
        const stub = scripted(problem(code, status, retry), paid());
        const { end } = await confirmed(stub);
        if (decision === 'again') {
          assert.deepEqual(end, receipt);
          assert.equal(stub.requests.length, 2);
          return;
        }
        assert.equal(decisionOf(end), decision);
        assert.equal(stub.requests.length, 1);
        assert.equal(end.key, stub.requests[0].key);
        assert.equal(end.status, status);
        assert.equal(end.requestId, 'r-1');
        assert.deepEqual(
          { code: end.problem.code, retry: end.problem.retry, detail: end.problem.detail },
          { code, retry, detail: `detail of ${code}` },
        );
      }),
    );
  }
});

suite('the published answers are judged', () => {
  for (const { name, decision, ...answer } of answers) {
    test(name, () =>
      inItsOwnTime(async () => {
        const stub = scripted(answer, paid());
        const { end } = await confirmed(stub);
        assert.equal(decisionOf(end), decision === 'again' ? 'done' : decision);
        assert.equal(stub.requests.length, decision === 'again' ? 2 : 1);
      }),
    );
  }
});

suite('the published scripts are played', () => { // C112
  for (const script of scripts) {
    test(script.name, () =>
      inItsOwnTime(async () => {
        const stub = scripted(...script.answers.map(played));
        const { end, took } = await confirmed(stub, { tries: script.tries });
        assert.equal(decisionOf(end), script.decision);
        assert.equal(stub.requests.length, script.requests);
        for (const { key, body } of stub.requests) {
          assert.equal(key, stub.requests[0].key);
          assert.equal(body, '{"amount":1000,"currency":"JPY"}');
        }
        assert.ok(took >= script.minSeconds * 1000, `${took} ms`);
        if (script.decision === 'unknown') assert.equal(end.key, stub.requests[0].key, 'the key to ask for');
      }),
    );
  }

  const played = ({ receipt, problem: code, headers, ...reply }) => {
    if (receipt) return paid();
    if (!code) return { headers, ...reply };
    const { status, retry } = problems.find((known) => known.code === code);
    return { ...reply, ...problem(code, status, retry, headers) };
  };
});

test('the published waits are read', () => {
  const now = Date.UTC(2026, 10, 30, 1, 2, 3);
  for (const wait of waits) {
    const said = { 'retry-after': wait.retryAfter, date: wait.date };
    const headers = { get: (name) => said[name] ?? null };
    assert.equal(retryAfter(headers, now), wait.seconds * 1000, JSON.stringify(wait));
  }
});

test('a wrong clock here does not matter where the answer has its own', () => {
  const headers = new Headers({ date: 'Mon, 30 Nov 2026 01:02:03 GMT', 'retry-after': 'Mon, 30 Nov 2026 01:02:08 GMT' });
  assert.equal(retryAfter(headers, Date.UTC(2020, 0, 1)), 5000);
});

test('the backoff doubles up to ten seconds', (t) => {
  t.mock.method(Math, 'random', () => 1);
  assert.deepEqual([1, 2, 3, 4, 5, 6, 7, 8].map(backoff), [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  assert.equal(backoff(1_000_000), 10_000);
});

test('the jitter is full', () => {
  const tenths = new Array(10).fill(0);
  for (let draw = 0; draw < 4000; draw++) tenths[Math.floor(backoff(1) / 25)]++;
  for (const drawn of tenths) assert.ok(drawn > 200 && drawn < 600, String(tenths)); // 400 expected, ten deviations allowed
});

test('the total time ends a call before a wait that would outlast it', () =>
  inItsOwnTime(async () => {
    const stub = scripted(problem('outcome_unknown', 503, 'same-key', { 'retry-after': '8' }));
    const { end, took } = await confirmed(stub, { totalTime: 10_000 });
    assert.ok(end instanceof UnknownOutcome);
    assert.equal(stub.requests.length, 2 - (took < 8000));
    assert.ok(took < 10_000, `${took} ms`);
    assert.equal(end.retryAfter, 8000);
    assert.equal(end.cause.problem.code, 'outcome_unknown');
  }));
