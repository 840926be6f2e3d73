/** A request as it goes out. */
export interface Sent {
  readonly number: number;
  readonly operation: string;
  readonly key: string;
  readonly body: string;
  readonly url: string;
  readonly who?: string | undefined;
}

/** The answer as it came. */
export interface Answered {
  readonly status: number;
  readonly replayed: boolean;
  /** Of a problem document. */
  readonly code?: string | undefined;
  readonly retryAfter?: string | undefined;
}

/** Who watches the wire. */
export interface Watcher {
  sent(request: Sent): void;
  /** The answer is there; it goes on when the promise is fulfilled. thrown: this page throws it away. */
  answered(request: Sent, answer: Answered, thrown: boolean): Promise<void> | void;
  /** No answer came. */
  failed(request: Sent): void;
}

export interface Wire {
  readonly fetch: typeof fetch;
  /** Has the next answer to a payment thrown away, once it has really come. */
  loseNext(): void;
}

let number = 0;

/** The way to the service: the browser's fetch, told of to a watcher. Looks (GET) pass unseen. */
export function wire(watcher: Watcher, who?: string): Wire {
  let lose = 0;
  const watched: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    if (request.method !== 'POST') return fetch(request);
    const path = new URL(request.url).pathname;
    const sent: Sent = {
      number: Date.now() * 1000 + (number++ % 1000),
      operation: path.endsWith('/confirm-payment') ? 'ConfirmPayment' : 'PlaceOrder',
      key: request.headers.get('idempotency-key') ?? '',
      body: await request.clone().text(),
      url: request.url,
      who,
    };
    watcher.sent(sent);
    let response: Response;
    try {
      response = await fetch(request);
    } catch (error) {
      watcher.failed(sent);
      throw error;
    }
    const thrown = sent.operation === 'ConfirmPayment' && lose > 0;
    if (thrown) lose--;
    await watcher.answered(sent, await read(response), thrown);
    if (thrown) throw new TypeError('the answer came, and this page has thrown it away');
    return response;
  };
  return { fetch: watched, loseNext: () => void lose++ };
}

async function read(response: Response): Promise<Answered> {
  const code = response.ok ? undefined : ((await response.clone().json()) as { code?: string }).code;
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed') === 'true',
    code,
    retryAfter: response.headers.get('retry-after') ?? undefined,
  };
}
