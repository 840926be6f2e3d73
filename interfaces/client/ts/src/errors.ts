import type { Problem } from './policy.js';

/** The service's definite word: the payment was not made. `problem.retry` says what may be done now. */
export class Refused extends Error {
  override readonly name = 'Refused';

  constructor(
    readonly key: string,
    readonly status: number,
    readonly problem: Problem,
    readonly requestId: string | null,
  ) {
    super(problem.code);
  }
}

/** The payment may have been made or not: the budget was spent, or an answer came that tells neither. Ask with
 * `outcome()`, or confirm again: the same request goes out under the same key. Never tell the shopper that it failed. */
export class UnknownOutcome extends Error {
  override readonly name = 'UnknownOutcome';

  constructor(
    /** The key to ask for. */
    readonly key: string,
    /** How the last try ended, or why there was none. */
    cause: unknown,
    /** What the last answer asked for before the next try, in ms; 0 if nothing. */
    readonly retryAfter = 0,
  ) {
    super('outcome unknown', { cause });
  }
}
