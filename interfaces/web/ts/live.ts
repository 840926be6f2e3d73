import type { Kept, Line } from './story.js';
import type { Answered } from './wire.js';

/** What happened to a record, as GET /api/live tells it. */
export interface Happened {
  readonly at: string;
  readonly what: string;
  readonly operation: string;
  readonly idempotencyKey: string;
  readonly orderId?: string;
  readonly refusal?: string;
  readonly unanswered?: boolean;
  readonly unattended?: boolean;
  readonly record?: {
    readonly status: Kept['status'];
    readonly executions: number;
    readonly leaseEndsAt?: string;
    readonly answer?: unknown;
  };
}

export interface Seen {
  happened(event: Happened): void;
  booked(orderId: string, lines: Line[]): void;
  /** Whether the live view is there. */
  connected(open: boolean): void;
}

/** What happens to a record before an answer like this one is given; undefined if nothing does. */
export function endBefore({ status, replayed }: Answered): string | undefined {
  if (replayed) return 'replayed';
  if (status < 400 || status === 402) return 'completed';
  return { 409: 'in_progress', 422: 'mismatch', 503: 'abandoned' }[status];
}

/** Before a stream that was refused is asked for again, in ms. */
const again = 2000;

/** Looks on until it is told that nobody wants to see it, and again when somebody does. A stream that breaks off is
 * connected again by the browser, one that is refused (as many look as can) only by the page. */
export function look(actor: string, seen: Seen): (wanted: boolean) => void {
  let source: EventSource | undefined;
  const open = (): void => {
    const own = (source = new EventSource(`/api/live?actor=${encodeURIComponent(actor)}`));
    own.onopen = () => seen.connected(true);
    own.onerror = () => {
      seen.connected(false);
      if (own.readyState === EventSource.CLOSED) setTimeout(() => own === source && open(), again);
    };
    own.addEventListener('record', ({ data }) => seen.happened(JSON.parse(data)));
    own.addEventListener('book', ({ data }) => {
      const { orderId, lines } = JSON.parse(data);
      seen.booked(orderId, lines);
    });
  };
  open();
  return (wanted) => {
    if (wanted === !!source) return;
    if (wanted) return open();
    source?.close();
    source = undefined;
    seen.connected(false);
  };
}

/** The record as an event tells it. A lease is counted down here from what was left of it when the event was made. */
export function keptOf({ idempotencyKey: key, at, record }: Happened, before?: Kept): Kept | undefined {
  if (!record) return undefined;
  const { status, executions, leaseEndsAt, answer } = record;
  if (!leaseEndsAt) return { key, status, executions, answer };
  const left = Math.max(Date.parse(leaseEndsAt) - Date.parse(at), 0);
  const running = before?.executions === executions && before.lease ? before.lease : left;
  return { key, status, executions, leaseEnds: Date.now() + left, lease: Math.max(running, left) };
}
