import { createCheckout, type Payment } from '../../client/ts/src/index.js';
import { token } from './customer.js';
import { byId } from './dom.js';
import { text } from './texts.js';
import { wire, type Answered, type Sent } from './wire.js';

/** What the second tab tells the first. */
export type FromTab =
  | { readonly kind: 'ready' }
  | { readonly kind: 'sent'; readonly sent: Sent }
  | { readonly kind: 'answered'; readonly sent: Sent; readonly answer: Answered }
  | { readonly kind: 'failed'; readonly sent: Sent }
  | { readonly kind: 'done' };

/** What it is told: the shopper clicks there, too. */
export interface ToTab {
  readonly orderId: string;
  readonly payment: Payment;
}

/** The second tab: a browsing context of its own, with its own client, that shares nothing with the first but what the
 * browser keeps for both (localStorage and locks). */
export function startTab(): void {
  const tell = (message: FromTab): void => parent.postMessage(message, location.origin);
  const way = wire({
    sent: (sent) => tell({ kind: 'sent', sent }),
    answered: (sent, answer) => tell({ kind: 'answered', sent, answer }),
    failed: (sent) => tell({ kind: 'failed', sent }),
  }, 'tab');
  const checkout = createCheckout({ url: '', token, fetch: way.fetch });
  const told = byId('told');
  addEventListener('message', async ({ origin, source, data }: MessageEvent<ToTab>) => {
    if (origin !== location.origin || source !== parent) return;
    told.textContent = text('shop.told.paying');
    try {
      await checkout.confirmPayment(data.orderId, data.payment);
      told.textContent = text('shop.told.paid');
    } catch {
      told.textContent = text('shop.told.unpaid');
    }
    tell({ kind: 'done' });
  });
  told.textContent = text('shop.tab.ready');
  tell({ kind: 'ready' });
}
