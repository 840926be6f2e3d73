import { Refused, UnknownOutcome } from './errors.js';
import type { Intent } from './intent.js';
import { backoff, documentIn, isForAnotherTry, problemIn, retryAfter } from './policy.js';

/** The service, and what a call of it may take. */
export interface Service {
  readonly url: string;
  readonly token: () => string | Promise<string>;
  readonly fetch: typeof fetch;
  readonly tries: number;
  readonly totalTime: number; // ms, waits included
  readonly tryTime: number; // ms, of one try, until the answer's last byte
}

/** One call: a POST of an intent's body, or, without one, a GET of what became of its key. Every try sends the same. */
export interface Call {
  readonly path: string;
  readonly intent: Intent;
  /** Told before the first try, when the intent has been marked as sent. */
  readonly sending?: () => void;
  /** Whether the document of a success is what was asked for; else a proxy has answered. */
  readonly expects: (document: any) => boolean;
}

/** What a call is doing. */
export type Progress =
  /** A try is under way, the n-th. */
  | { readonly status: 'sending'; readonly tries: number }
  /** The next try is in so many seconds; told once a second. */
  | { readonly status: 'waiting'; readonly seconds: number };

/** A call under way. */
export interface Run {
  /** Aborted when the call's time is over, or nobody waits for it any more. */
  readonly span: AbortController;
  told(progress: Progress): void;
  /** Set to end a wait early, at its next full second. */
  awake?: boolean;
}

/** Sends a call until there is a definite answer or the budget is spent, and returns the document of a success. Errors:
 * Refused; UnknownOutcome; for what was never sent, whatever was in the way. */
export async function send(to: Service, call: Call, run: Run): Promise<any> {
  const { intent, sending } = call;
  const deadline = performance.now() + to.totalTime; // by a clock that nobody sets back
  const { signal } = run.span;
  const stopped = aborted(signal);
  let last: Tried = {};
  try {
    for (let n = 1; ; n++) {
      const request = await ready(to, call, stopped);
      run.told({ status: 'sending', tries: n });
      const before = intent.sent;
      intent.sent = true;
      if (!before) sending?.();
      last = await tried(to, call, request, before, stopped);
      if (last.document) return last.document;
      signal.throwIfAborted();
      const wait = (last.asked ?? 0) + backoff(n);
      if (!last.again || n >= to.tries || performance.now() + wait >= deadline) throw last.cause;
      await pause(wait, run, stopped);
    }
  } catch (cause) {
    throw last.definite || !intent.sent ? cause : new UnknownOutcome(intent.key, cause, last.asked);
  }
}

/** What a try has come to: the document of a success, or why there is none. */
interface Tried {
  readonly document?: any;
  readonly cause?: unknown;
  readonly definite?: boolean; // the cause is the service's last word
  readonly again?: boolean; // as the policy has it, whatever the budget
  readonly asked?: number; // ms, by Retry-After
}

async function tried(
  { fetch, tryTime }: Service,
  { intent, expects }: Call,
  request: Request,
  before: boolean | undefined,
  stopped: Promise<never>,
): Promise<Tried> {
  let response, text;
  try {
    response = await fetch(request, { signal: within(tryTime, stopped).signal });
    text = await response.text();
  } catch (cause) {
    return { cause, again: true }; // also of an answer that is cut off in its middle
  }
  const { status, headers } = response;
  const document = documentIn(text);
  if (response.ok) return expects(document) ? { document } : { cause: 'another document' };
  const problem = problemIn(document);
  const again = isForAnotherTry(status, problem);
  return {
    cause: problem ? new Refused(intent.key, status, problem, headers.get('x-request-id')) : `status ${status}`,
    // "The key was not used" is said of this try. An earlier one, of which nothing was heard, may have used it.
    definite: !!problem && !again && !(intent.body && before && problem.retry === 'after-fix'),
    again,
    asked: retryAfter(headers, Date.now()),
  };
}

/** The request of one try. It is made, and its token asked for, before anything is sent: what fails here fails for good. */
async function ready(to: Service, { path, intent: { key, body } }: Call, stopped: Promise<never>): Promise<Request> {
  const token = await Promise.race([stopped, to.token()]);
  return new Request(to.url + path, {
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body && { 'Content-Type': 'application/json', 'Idempotency-Key': key }),
    },
    ...(body && { method: 'POST', body }),
    redirect: 'manual', // the service never redirects; followed, a login page would be the answer
  });
}

/** What is aborted after so many ms, or with the reason that ends something larger. (AbortSignal.any would do, but the
 * garbage collector of some engines takes its sources away.) */
export function within(ms: number, stopped?: Promise<never>): AbortController {
  const span = new AbortController();
  const stop = (reason: unknown): void => span.abort(reason);
  aborted(AbortSignal.timeout(ms)).catch(stop);
  stopped?.catch(stop);
  return span;
}

/** Rejects with the signal's reason when that is aborted, and never resolves: for races. */
export function aborted(signal: AbortSignal): Promise<never> {
  const stopped = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
  });
  stopped.catch(() => {}); // there need not be a race at that moment
  return stopped;
}

/** Waits, and tells each second how long still. */
async function pause(wait: number, run: Run, stopped: Promise<never>): Promise<void> {
  const until = performance.now() + wait;
  run.awake = false;
  for (let left = wait; left > 0 && !run.awake; left = until - performance.now()) {
    run.told({ status: 'waiting', seconds: Math.ceil(left / 1000) });
    await Promise.race([stopped, sleep(left % 1000 || 1000)]);
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
