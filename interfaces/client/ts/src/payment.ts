import type { Intent } from './intent.js';
import { isText, type Problem } from './policy.js';
import type { Call, Progress } from './send.js';

/** The money that the shopper confirms; it must be the order's. */
export interface Payment {
  /** Minor units: for JPY yen, for EUR cents. */
  readonly amount: number;
  /** ISO 4217. */
  readonly currency: string;
  /** The provider's token, never card data. None: the provider's default. */
  readonly paymentMethod?: string | undefined;
}

/** A confirmed payment. */
export interface Receipt {
  readonly orderId: string;
  readonly status: 'PAID';
  readonly paidAt: string;
  readonly amount: number;
  readonly currency: string;
  readonly paymentId: string;
}

/** What became of a key, without sending its request again. */
export interface Outcome {
  readonly operation: 'ConfirmPayment';
  readonly idempotencyKey: string;
  readonly status: 'IN_PROGRESS' | 'SUCCEEDED' | 'FAILED';
  readonly executions: number;
  readonly createdAt: string;
  readonly completedAt?: string;
  readonly expiresAt?: string;
  /** Of SUCCEEDED. */
  readonly response?: Receipt;
  /** Of FAILED: refused, for good under this key. */
  readonly problem?: Problem;
}

/** What the page renders for an order. */
export type PaymentState =
  | { readonly status: 'idle' }
  | Progress
  /** It was sent, and nobody here knows what came of it. */
  | { readonly status: 'unknown'; readonly key: string }
  | { readonly status: 'paid'; readonly receipt: Receipt }
  | { readonly status: 'refused'; readonly problem: Problem };

/** The request's exact text: the members that the contract knows, and no others that the page's object may have. */
export const bodyOf = ({ amount, currency, paymentMethod }: Payment): string =>
  JSON.stringify({ amount, currency, paymentMethod });

const isReceipt = (document: any, orderId: string): boolean =>
  document?.orderId === orderId &&
  document.status === 'PAID' &&
  Number.isSafeInteger(document.amount) &&
  [document.currency, document.paymentId, document.paidAt].every(isText);

/** The call that confirms an order's payment. */
export const confirmation = (orderId: string, intent: Intent, sending: () => void): Call => ({
  path: `/api/orders/${encodeURIComponent(orderId)}/confirm-payment`,
  intent,
  sending,
  expects: (document) => isReceipt(document, orderId),
});

/** The call that asks what became of a key. */
export const look = (orderId: string, key: string): Call => ({
  path: `/api/idempotency-keys/${encodeURIComponent(key)}?operation=ConfirmPayment`,
  intent: { key, sent: true },
  expects: (document) =>
    document?.status === 'IN_PROGRESS' ||
    (document?.status === 'SUCCEEDED' && isReceipt(document.response, orderId)) ||
    (document?.status === 'FAILED' && isText(document.problem?.code)),
});
