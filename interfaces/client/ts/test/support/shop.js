import { createServer, request as ask } from 'node:http';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<button id="pay">Pay</button> <output id="state"></output>
<script type="module">
  import { createCheckout } from '/checkout.min.js'
  const asked = new URLSearchParams(location.search)
  const orderId = asked.get('order')
  const payment = { amount: 1000, currency: 'JPY', paymentMethod: asked.get('method') ?? 'pm_ok' }
  const storage = asked.has('session') ? sessionStorage : undefined
  const checkout = createCheckout({ url: '', token: () => 'demo-alice', storage })
  checkout.subscribe(orderId, (state) => (document.querySelector('#state').value = state.status))
  document.querySelector('#pay').onclick = () => checkout.confirmPayment(orderId, payment).catch(() => {})
</script>`;

// The page of a developer who has pasted the README's example.
const pasted = async () => {
  const [, example] = /```js\n(.*?)```/s.exec(await readFile(new URL('../../README.md', import.meta.url), 'utf8'));
  return `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="importmap">{"imports":{"kakutei-checkout":"/checkout.min.js"}}</script>
<button id="pay">Pay</button> <output id="state"></output>
<script>
  const [button, output] = document.querySelectorAll('button, output')
  const session = { token: async () => 'demo-alice' }
  const [, id, method] = location.hash.split('/')
  const order = { id, payment: { amount: 1000, currency: 'JPY', paymentMethod: method } }
</script>
<script type="module">${example.replace('https://pay.example.com', '')}; output.title = 'ready'</script>`;
};

/** A shop whose page comes from the service's own address: a server with the page and the client's bundle, in front of
 * the service. It keeps what it has been asked, and can hold answers back. */
export async function shop(service) {
  const bundle = await readFile(new URL('../../dist/checkout.min.js', import.meta.url));
  const example = await pasted();
  const watchers = new Set();
  let confirmations, atWork, gate;
  const reset = () => {
    confirmations = [];
    atWork = new Set();
    gate = Promise.resolve();
  };
  reset();
  const server = createServer((request, response) => {
    const [path] = request.url.split('?');
    if (path === '/checkout.min.js') response.setHeader('content-type', 'text/javascript').end(bundle);
    else if (path === '/' || path === '/pasted') response.setHeader('content-type', 'text/html').end(path === '/' ? html : example);
    else forward(request, response);
  });

  const forward = async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    let held;
    if (request.method === 'POST') {
      const now = atWork.add(response);
      response.on('close', () => now.delete(response));
      confirmations.push({ key: request.headers['idempotency-key'], body, atWork: now.size });
      watchers.forEach((look) => look());
      held = gate;
    }
    const onward = ask(service.url + request.url, { method: request.method, headers: request.headers }, async (answer) => {
      await held;
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.end(body);
  };

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    /** Forgets what it was asked, and holds nothing back. */
    reset,
    confirmations: () => confirmations,
    page: (orderId, more = '') => `http://127.0.0.1:${server.address().port}/?order=${orderId}${more}`,
    pasted: (orderId, method) => `http://127.0.0.1:${server.address().port}/pasted#/${orderId}/${method}`,
    /** Resolves when so many confirmations of an order have come. */
    async asked(n) {
      if (confirmations.length >= n) return;
      await new Promise((resolve) => {
        const look = () => confirmations.length >= n && watchers.delete(look) && resolve();
        watchers.add(look);
      });
    },
    /** Holds the answers to confirmations back until the returned function is called. The service has done its work. */
    hold() {
      let release;
      gate = new Promise((resolve) => (release = resolve));
      return release;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
