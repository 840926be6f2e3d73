import { html } from './dom.js';
import { charges, type Kept, type Order, type Story } from './story.js';
import { money, short, text } from './texts.js';
import { without } from './without.js';

/** A status in a frame, which is broken behind an underscore, if anywhere. */
const chip = (status: string): HTMLElement => html('strong', { class: `chip ${status.toLowerCase()}` },
  ...status.split('_').flatMap((word, n) => (n ? ['_', html('wbr'), word] : [word])));

const fact = (name: string, value: Node | string, title?: string): Node[] => [
  html('dt', {}, name), html('dd', title ? { title } : {}, value),
];

/** The order, as the service tells it. */
export function orderCard(order?: Order): Node {
  if (!order) return html('p', { class: 'none' }, text('shop.order.none'));
  const { status, amount, currency, orderId, paymentId } = order;
  return html('dl', {},
    ...fact(text('shop.order.status'), chip(status)),
    ...fact(text('shop.order.amount'), money(amount, currency)),
    ...fact(text('shop.order.id'), html('code', {}, short(orderId)), orderId),
    ...(paymentId ? fact(text('shop.order.payment'), html('code', {}, short(paymentId)), paymentId) : []));
}

/** The record of the latest payment. */
export function recordCard({ records }: Story): Node {
  const record = records.at(-1);
  if (!record) return html('p', { class: 'none' }, text('shop.record.none'));
  const { key, status, executions, answer } = record;
  return html('dl', {},
    ...fact(text('shop.record.status'), chip(status)),
    ...fact(text('shop.record.executions'), html('span', { class: 'count' }, String(executions))),
    ...(status === 'IN_PROGRESS' ? fact(text('shop.record.lease'), lease(record)) : []),
    ...fact(text('shop.record.key'), html('code', {}, short(key)), key),
    ...(answer ? [html('dt', { class: 'wide' }, text('shop.record.answer')), html('dd', { class: 'wide' },
      html('pre', { tabindex: 0, role: 'group', 'aria-label': text('shop.record.answer') }, JSON.stringify(answer)))] : []));
}

/** A lease, counting down. */
function lease(record: Kept): HTMLElement {
  const left = leaseLeft(record);
  return html('span', { class: 'lease' },
    html('meter', { min: 0, max: record.lease || 1, value: left, 'aria-label': text('shop.record.lease') }),
    html('span', { id: 'lease-left' }, left > 0 ? text('shop.record.left', { seconds: Math.ceil(left / 1000) }) : text('shop.record.over')));
}

/** What is left of a lease, in ms. */
export const leaseLeft = ({ leaseEnds = 0 }: Kept): number => Math.max(leaseEnds - Date.now(), 0);

/** What the gateway has booked for the order: the money. */
export function bookCard({ book, order, on, records }: Story): Node {
  const taken = charges(book);
  const currency = order?.currency ?? 'JPY';
  return html('div', {},
    html('p', { class: 'taken', id: 'taken', 'data-charges': taken.length },
      html('strong', {}, String(taken.length)),
      html('span', {}, text(taken.length === 1 ? 'shop.book.charge' : 'shop.book.charges')),
      html('span', {}, money(taken.reduce((sum, { amount = 0 }) => sum + amount, 0), currency))),
    html('ul', {}, ...book.map((line) => html('li', { class: line.status },
      html('code', { title: line.gatewayKey }, `${short(order?.orderId ?? '')}:${line.attempt}`),
      ` ${line.status === 'approved' ? text('shop.book.approved', { money: money(line.amount ?? 0, line.currency) })
        : line.status === 'declined' ? text('shop.book.declined', { why: line.declineCode ?? '' })
          : text('shop.book.unreadable')}`))),
    ...(records.length ? [without(on)] : []));
}
