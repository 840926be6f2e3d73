import { Refused, UnknownOutcome } from './errors.js';
import { intentIn, intentsIn, prefix, shared, type Intent, type Keep } from './intent.js';
import { newKey } from './key.js';
import { bodyOf, confirmation, look, type Outcome, type Payment, type PaymentState, type Receipt } from './payment.js';
import { aborted, send, sleep, within, type Run, type Service } from './send.js';

export interface CheckoutOptions {
  /** The service's address; empty if the page comes from there. */
  readonly url: string;
  /** The shopper's bearer token, asked for before each try, so that one that is over can be renewed. */
  readonly token: () => string | Promise<string>;
  /** Where keys are kept: localStorage by default, shared between tabs; sessionStorage ends with its tab. */
  readonly storage?: Keep;
  /** The page's own fetch, if it has one. */
  readonly fetch?: typeof fetch;
  /** Tries at most per call: 12. */
  readonly tries?: number;
  /** Time at most per call, waits included, in ms: 120000. It gets past a holder's lease (30 s) and a slow provider. */
  readonly totalTime?: number;
  /** Time at most per try, in ms: 20000. The service answers within 15 s by default. */
  readonly tryTime?: number;
}

export interface CallOptions {
  /** Ends the waiting of this caller. The payment goes on while another caller waits for it; what was sent may have its
   * effect all the same, and the next call asks under the same key. */
  readonly signal?: AbortSignal | undefined;
}

/** A page's payments. Make one, and keep it. */
export interface Checkout {
  /** Confirms an order's payment. While a call of the order runs, every further one gets the same promise; after a reload,
   * after an unknown outcome and in another tab the request goes out unchanged, under the same key, whatever `payment`
   * says, until its answer is final. Errors: `Refused`, `UnknownOutcome`, the signal's reason; others before anything was
   * sent (the token's, say). */
  confirmPayment(orderId: string, payment: Payment, options?: CallOptions): Promise<Receipt>;
  /** Asks what became of the order's payment without sending it: under the key that is kept for it, or the one that an
   * `UnknownOutcome` named. Undefined: no such key is kept, or the service has no record of it. */
  outcome(orderId: string, key?: string, options?: CallOptions): Promise<Outcome | undefined>;
  /** The order's state; after a reload "unknown" if a payment was sent and its answer never came. */
  state(orderId: string): PaymentState;
  /** Tells the order's state now and whenever it changes, until the returned function is called. */
  subscribe(orderId: string, listener: (state: PaymentState) => void): () => void;
}

// How long two tabs without locks may take to see each other's intent, in ms.
const settling = 100;

/** A run of an order's payment, which all callers of it share. */
interface Paying extends Run {
  told(state: PaymentState): void;
  promise: Promise<Receipt>;
  /** How many callers wait for it. */
  callers: number;
  /** The intent that was last seen to stand, also if another tab has come to an end with it since. */
  seen?: Intent | undefined;
}

/** Makes a page's checkout. It sends nothing yet. */
export function createCheckout({
  url,
  token,
  storage = shared(),
  fetch = globalThis.fetch,
  tries = 12,
  totalTime = 120_000,
  tryTime = 20_000,
}: CheckoutOptions): Checkout {
  const service: Service = { url: url.replace(/\/$/, ''), token, fetch, tries, totalTime, tryTime };
  const intents = intentsIn(storage);
  const running = new Map<string, Paying>();
  const states = new Map<string, PaymentState>();
  const listeners = new Set<readonly [orderId: string, listener: Listener]>();

  const state = (orderId: string): PaymentState => {
    const known = states.get(orderId) ?? standing(intents.of(orderId));
    states.set(orderId, known);
    return known;
  };

  const tell = (orderId: string, state: PaymentState): void => {
    states.set(orderId, state);
    for (const [of, listener] of listeners) if (of === orderId) notify(listener, state);
  };

  /** What a definite answer means for the intent, and for the page. */
  const settle = (orderId: string, intent: Intent, end: Receipt | Refused): PaymentState => {
    if (!(end instanceof Refused)) {
      intents.drop(orderId, intent);
      return { status: 'paid', receipt: end };
    }
    const { problem } = end;
    if (problem.retry === 'new-key') intents.drop(orderId, intent);
    if (problem.retry === 'after-fix') intents.keep(orderId, { key: intent.key });
    return { status: 'refused', problem };
  };

  const pay = async (orderId: string, payment: Payment, run: Paying): Promise<Receipt> => {
    let end: PaymentState | undefined;
    let intent: Intent | undefined;
    try {
      const body = bodyOf(payment);
      run.told({ status: 'sending', tries: 1 });
      run.seen = intents.of(orderId);
      return await alone(prefix + orderId, run.span.signal, async (locked) => {
        intent = intents.of(orderId) ?? run.seen;
        if (!intent?.sent) {
          // A key has one request only: another tab may be about to send the one that stands there.
          const key = intent && (intent.body ?? body) === body ? intent.key : newKey();
          intents.keep(orderId, (intent = run.seen = { key, body }));
          if (!locked) {
            // Another tab may begin at the same moment. What it has sent, or else what stands in the end, is that of both.
            await sleep(settling);
            intent = run.seen.sent ? run.seen : (intents.of(orderId) ?? run.seen);
            if (intent.sent) intents.keep(orderId, intent); // this tab's own has been written over it
          }
        }
        intent.body ??= body;
        try {
          const call = confirmation(orderId, intent, () => intents.keep(orderId, intent!));
          const receipt: Receipt = await send(service, call, run);
          end = settle(orderId, intent, receipt);
          return receipt;
        } catch (error) {
          if (error instanceof Refused) end = settle(orderId, intent, error);
          throw error;
        }
      });
    } catch (error) {
      end ??= standing(intent ?? run.seen);
      throw end.status === 'unknown' && !(error instanceof UnknownOutcome) ? new UnknownOutcome(end.key, error) : error;
    } finally {
      forget(orderId, run);
      run.told(end!);
    }
  };

  const forget = (orderId: string, run: Paying): void => {
    if (running.get(orderId) === run) running.delete(orderId);
  };

  const start = (orderId: string, payment: Payment): Paying => {
    const run = {
      span: within(totalTime),
      callers: 0,
      // A run that all its callers have left says nothing any more once there is another.
      told(state) {
        if ((running.get(orderId) ?? run) === run) tell(orderId, state);
      },
    } as Paying; // its promise follows
    running.set(orderId, run);
    run.promise = pay(orderId, payment, run);
    return run;
  };

  const outcome: Checkout['outcome'] = async (orderId, key = intents.of(orderId)?.key, { signal } = {}) => {
    if (!key) return undefined;
    try {
      const span = within(totalTime, signal && aborted(signal));
      const found: Outcome = await send(service, look(orderId, key), { span, told() {} });
      const { status, response, problem } = found;
      if (status !== 'IN_PROGRESS' && !running.has(orderId) && (intents.of(orderId)?.key ?? key) === key) {
        tell(orderId, settle(orderId, { key }, response ?? new Refused(key, problem!.status!, problem!, null)));
      }
      return found;
    } catch (error) {
      if (error instanceof Refused && error.problem.code === 'not_found') return undefined;
      throw signal?.aborted ? signal.reason : error;
    }
  };

  // Another tab has begun an intent, or come to an end with it.
  globalThis.addEventListener?.('storage', ({ key, newValue, oldValue }) => {
    const orderId = key?.startsWith(prefix) ? key.slice(prefix.length) : '';
    const run = running.get(orderId);
    const known = states.get(orderId);
    const theirs = intentIn(newValue);
    const ended = intentIn(oldValue);
    if (run) {
      run.seen = theirs ?? ended ?? run.seen;
      run.awake ||= !theirs;
    } else if (known && known.status !== 'paid') {
      if (theirs) tell(orderId, standing(theirs));
      else if (ended?.sent) outcome(orderId, ended.key).catch(() => {}); // until then it stays unknown here
    }
  });

  return {
    confirmPayment(orderId, payment, { signal } = {}) {
      const known = state(orderId);
      if (known.status === 'paid') return Promise.resolve(known.receipt);
      if (signal?.aborted) return Promise.reject(signal.reason);
      const run = running.get(orderId) ?? start(orderId, payment);
      run.callers++;
      if (!signal) return run.promise;
      const leave = (): void => {
        if (--run.callers) return;
        forget(orderId, run);
        run.span.abort(signal.reason);
      };
      signal.addEventListener('abort', leave);
      return Promise.race([aborted(signal), run.promise]);
    },
    outcome,
    state,
    subscribe(orderId, listener) {
      const entry = [orderId, listener] as const;
      listeners.add(entry);
      notify(listener, state(orderId));
      return () => void listeners.delete(entry);
    },
  };
}

type Listener = (state: PaymentState) => void;

/** A listener that fails is the page's own fault, and must not become one of the payment. */
function notify(listener: Listener, state: PaymentState): void {
  try {
    listener(state);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** What a page can tell of an intent that it finds. */
const standing = (intent?: Intent): PaymentState =>
  intent?.sent ? { status: 'unknown', key: intent.key } : { status: 'idle' };

/** Does the work while no other tab does the same, where the browser can see to that. */
async function alone<T>(name: string, signal: AbortSignal, work: (locked: boolean) => Promise<T>): Promise<T> {
  const locks: LockManager | undefined = globalThis.navigator?.locks; // none outside of secure contexts
  let begun;
  try {
    if (locks) return await locks.request(name, { signal }, () => (begun = work(true)));
  } catch (error) {
    if (begun || signal.aborted) throw error;
  }
  return work(false); // a sandboxed page is refused its locks
}
