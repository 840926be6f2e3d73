export { createCheckout } from './checkout.js';
export type { CallOptions, Checkout, CheckoutOptions } from './checkout.js';
export { Refused, UnknownOutcome } from './errors.js';
export type { Keep } from './intent.js';
export type { Outcome, Payment, PaymentState, Receipt } from './payment.js';
export type { Advice, Problem } from './policy.js';
