import { byId, html } from './dom.js';
import { money, text } from './texts.js';

/** What the shop sells, in yen. */
const shelf: Readonly<Record<string, number>> = { sencha: 500, hojicha: 450, yokan: 800 };

export type Cart = Readonly<Record<string, number>>;

export const total = (cart: Cart): number =>
  Object.entries(cart).reduce((sum, [sku, quantity]) => sum + (shelf[sku] ?? 0) * quantity, 0);

/** The request that places an order of this cart. */
export const orderOf = (cart: Cart): string => JSON.stringify({
  currency: 'JPY',
  lines: Object.entries(cart).filter(([, quantity]) => quantity > 0).map(([sku, quantity]) => ({
    sku, name: text(`shop.item.${sku}`), quantity, unitPrice: shelf[sku],
  })),
});

const most = 9;

/** Draws the cart; closed: it has been ordered. */
export function drawCart(cart: Cart, closed: boolean, changed: (cart: Cart) => void): void {
  const had = document.activeElement?.id;
  byId('items').replaceChildren(...Object.entries(shelf).map(([sku, price]) => {
    const quantity = cart[sku] ?? 0;
    const name = text(`shop.item.${sku}`);
    const step = (by: number, sign: string, says: string): HTMLElement => {
      const button = html('button', {
        type: 'button', id: `${sku}${by}`, 'aria-label': text(says, { item: name }),
        disabled: closed || quantity + by < 0 || quantity + by > most,
      }, sign);
      button.onclick = () => changed({ ...cart, [sku]: quantity + by });
      return button;
    };
    return html('li', {}, html('span', { class: 'name' }, name, ' ', html('small', {}, money(price))),
      html('span', { class: 'steps' },
        step(-1, '−', 'shop.cart.less'), html('output', {}, String(quantity)), step(1, '+', 'shop.cart.more')));
  }));
  byId('total').textContent = money(total(cart));
  if (had) document.getElementById(had)?.focus();
}
