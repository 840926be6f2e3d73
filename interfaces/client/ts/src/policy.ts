// The decision about an answer, and the wait until the next try: docs/retry-decisions.json has both as data, and the Go
// client and the service are tested against the same file.

/** The service's instruction about what to do with a request. */
export type Advice = 'same-key' | 'new-key' | 'after-fix' | 'never';

/** A problem document (RFC 9457) of the service. */
export interface Problem {
  readonly code: string;
  /** A later version of the service may give an advice that is not known here. It is taken as a refusal. */
  readonly retry: Advice | (string & {});
  readonly status?: number;
  readonly title?: string;
  readonly detail?: string;
  /** Of `payment_declined`: the provider's reason. */
  readonly declineCode?: string;
  /** Of `invalid_state`: the order's state. */
  readonly orderStatus?: string;
  /** Of `invalid_request`: what is wrong, by pointers into the body. */
  readonly errors?: readonly { readonly pointer?: string; readonly detail: string }[];
}

/** The JSON document in text; undefined if there is none, or not a whole one. */
export function documentIn(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The service's own word. A document without code and advice is somebody else's: a proxy's, say. */
export const problemIn = (document: any): Problem | undefined =>
  isText(document?.code) && isText(document.retry) ? document : undefined;

export const isText = (value: unknown): boolean => typeof value === 'string' && !!value;

/** Whether to send the request again after an answer that is no success: what a problem advises, else what the status
 * suggests. A try without an answer is repeated anyhow. */
export const isForAnotherTry = (status: number, problem?: Problem): boolean =>
  problem ? problem.retry === 'same-key' : status === 409 || status === 429 || status >= 500;

/** The wait in ms that Retry-After asks for (RFC 9110 §10.2.3: whole seconds or a date), 30 s at most: a lease. What cannot be
 * read asks for none. A date is compared with the answer's own Date where the page may read that, so that a clock which
 * is wrong here does not matter. */
export function retryAfter(headers: Headers, now: number): number {
  const text = headers.get('retry-after')!;
  const wait = /^ *\d+ *$/.test(text) ? +text * 1000 : instant(text) - (instant(headers.get('date')!) || now);
  return Math.min(Math.max(wait || 0, 0), 30_000);
}

// An HTTP date in any of its three forms, all of which are in GMT although the oldest does not say so. Date.parse alone
// takes far more for a date: '1.5' is one, and '3, 4'. No text is none.
const instant = (text: string): number =>
  /^[A-Z][a-z]{2,8},? [-\w: ]+$/.test(text) ? Date.parse(text.replace(/-/g, ' ').replace(/( GMT)?$/, ' GMT')) : NaN;

/** The wait in ms after the n-th try: anything up to a limit that doubles from 250 ms to 10 s (full jitter: pages that
 * failed at the same moment must not come again at the same moment), on top of what the service has asked for. */
export const backoff = (n: number): number => Math.random() * Math.min(125 * 2 ** n, 10_000);
