import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

// `make build` has put it there.
const binary = new URL('../../../../../bin/kakutei', import.meta.url).pathname;

/** Starts a service on a free port, on the store in memory, with further settings. */
export async function serving(settings = {}) {
  const running = spawn(binary, ['serve'], {
    env: { KAKUTEI_LISTEN: '127.0.0.1:0', KAKUTEI_DATABASE_URL: 'memory:', ...settings },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(running, 'exit');
  const address = new Promise((resolve, reject) => {
    createInterface(running.stdout).on('line', (line) => {
      const [, url] = /^\s*page\s+(http:\S+?)\/?$/.exec(line) ?? [];
      if (url) resolve(url);
    });
    ended.then(() => reject(new Error(`${binary} has ended before it was ready`)), reject);
  });
  return {
    ...service(await address),
    async stop() {
      running.kill('SIGKILL');
      await ended;
    },
  };
}

/** What the tests ask of a service beside the client. */
function service(url) {
  const ask = async (path, { token = 'demo-alice', ...init } = {}) => {
    const answer = await fetch(url + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
    return answer.json();
  };
  return {
    url,
    ask,
    /** Places an order over 1000 yen and returns its id. */
    async order() {
      const body = '{"currency":"JPY","lines":[{"sku":"tea","name":"煎茶","quantity":2,"unitPrice":500}]}';
      const headers = { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() };
      return (await ask('/api/orders', { method: 'POST', headers, body })).orderId;
    },
    /** The audit log's entries about an order's keys: repeats under new keys, reused keys, takeovers. */
    audit: async (kind) => (await ask(`/api/audit?kind=${kind}`, { token: 'demo-operator' })).entries,
  };
}
