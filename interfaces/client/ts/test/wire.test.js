import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { suite, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createCheckout, UnknownOutcome } from '../dist/index.js';
import { receipt, storage } from './support/stub.js';

/** A server on a socket that answers each request in its own way; the last way is for ever. */
const served = async (t, ...ways) => {
  let n = 0;
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method, url: request.url, key: request.headers['idempotency-key'], body });
    ways[Math.min(n++, ways.length - 1)](response, request.socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
};

const paid = (response) => response.end(JSON.stringify(receipt));
const reset = (_, socket) => socket.resetAndDestroy();
const cut = (response, socket) => {
  response.writeHead(200, { 'content-length': '500' });
  response.write(JSON.stringify(receipt).slice(0, 50), () => socket.destroy());
};
const silence = () => {};
const stall = (response) => response.writeHead(200, { 'content-length': '500' }).write('{"orderId":');

const confirmed = ({ url }, options) =>
  createCheckout({ url, token: () => 't', storage: storage(), ...options }).confirmPayment('o-1', { amount: 1000, currency: 'JPY' });

suite('on the wire', () => {
  for (const [name, way] of Object.entries({ 'a reset': reset, 'an answer that is cut off': cut })) {
    test(`${name} is followed by the same request`, async (t) => {
      const server = await served(t, way, paid);
      assert.deepEqual(await confirmed(server), receipt);
      assert.equal(server.requests.length, 2);
      assert.deepEqual(server.requests[0], server.requests[1]);
    });
  }

  for (const [name, way] of Object.entries({ 'no answer': silence, 'half an answer and then nothing': stall })) {
    test(`${name} ends with the try’s time`, async (t) => {
      const server = await served(t, way, paid);
      assert.deepEqual(await confirmed(server, { tryTime: 500 }), receipt);
      assert.equal(server.requests.length, 2);
    });

    test(`${name} ends with the total time, too`, async (t) => {
      const server = await served(t, way);
      const unknown = await confirmed(server, { totalTime: 1000 }).catch((error) => error);
      assert.ok(unknown instanceof UnknownOutcome);
      assert.equal(unknown.cause.name, 'TimeoutError');
      assert.equal(server.requests.length, 1);
    });
  }

  // Node.js 20 collects a timeout that only AbortSignal.any knows of; so a test does what a long-lived page would.
  test('a call’s time is over in time, whatever the garbage collector takes', async (t) => {
    setFlagsFromString('--expose-gc');
    const collecting = setInterval(runInNewContext('gc'), 20);
    t.after(() => clearInterval(collecting));
    const server = await served(t, silence);
    const unknown = await confirmed(server, { tryTime: 300, totalTime: 1500 }).catch((error) => error);
    assert.ok(unknown instanceof UnknownOutcome);
    assert.ok(server.requests.length > 1);
  });

  for (const status of [301, 302, 303, 307, 308]) {
    test(`a redirect (${status}) is not followed`, async (t) => {
      const server = await served(t, (response) => response.writeHead(status, { location: '/login' }).end(), paid);
      await assert.rejects(confirmed(server), UnknownOutcome);
      assert.equal(server.requests.length, 1);
    });
  }

  test('nobody there at all', async (t) => {
    const server = await served(t, paid);
    const gone = { url: server.url.replace(/\d+$/, '1') };
    await assert.rejects(confirmed(gone, { tries: 2 }), UnknownOutcome);
  });
});
