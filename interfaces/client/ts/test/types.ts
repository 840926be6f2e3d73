// What a page's compiler must know, and must refuse. `npm test` checks this file against the published declarations; an
// error that is expected and does not come is one, too.
import { createCheckout, Refused, UnknownOutcome } from 'kakutei-checkout';
import type { Checkout, PaymentState, Receipt } from 'kakutei-checkout';
import { postingKey } from 'kakutei-checkout/posting-key';

const checkout: Checkout = createCheckout({ url: '', token: async () => 't', storage: sessionStorage, tries: 3 });

export const receipt: Promise<Receipt> = checkout.confirmPayment(
  'o-1',
  { amount: 1000, currency: 'JPY' },
  { signal: new AbortController().signal },
);

/** Every state is handled; with one left out this would not compile. */
export function render(state: PaymentState): string {
  switch (state.status) {
    case 'idle':
      return '';
    case 'sending':
      return `try ${state.tries.toFixed()}`;
    case 'waiting':
      return `${state.seconds.toFixed()} s`;
    case 'unknown':
      return state.key;
    case 'paid':
      return state.receipt.paymentId;
    case 'refused':
      return state.problem.declineCode ?? state.problem.code;
  }
}

export function told(error: unknown): string | undefined {
  if (error instanceof Refused) return error.problem.retry;
  if (error instanceof UnknownOutcome) return error.key;
  return undefined;
}

export const key: Promise<string> = postingKey({
  companyId: 'c', sourceDocumentType: 'adjustment', sourceDocumentId: 'd', serviceDate: '2025-01-29', total: 1,
});

// @ts-expect-error: without a token nothing can be sent
createCheckout({ url: '' });
// @ts-expect-error: money is an integer count of minor units, not a text
void checkout.confirmPayment('o-1', { amount: '1000', currency: 'JPY' });
// @ts-expect-error: the currency belongs to the amount
void checkout.confirmPayment('o-1', { amount: 1000 });
// @ts-expect-error: the receipt is not there before the payment is made
export const early: Receipt = checkout.state('o-1').receipt;
// @ts-expect-error: no such document type
void postingKey({ companyId: 'c', sourceDocumentType: 'receipt', sourceDocumentId: 'd', serviceDate: '2025-01-29', total: 1 });
