import type { Values } from './texts.js';

/** Who takes part, from left to right. */
export const lanes = ['client', 'service', 'record', 'gateway'] as const;
export type Lane = (typeof lanes)[number];

/** What an arrow means: beside the plain ones a replay, money or a definite "no", and what got lost or is refused. */
export type Tone = 'plain' | 'replay' | 'bad' | 'money';

/** One arrow of the diagram. Its text is named, not written, so that it can be read in the other language later. */
export interface Step {
  readonly from: Lane;
  readonly to: Lane;
  readonly says: string;
  readonly values?: Values;
  readonly tone: Tone;
  /** It did not arrive. */
  readonly broken?: boolean;
  /** Whose arrow it is, if not the first tab's: a part of shop.who. */
  readonly who?: string | undefined;
}

/** A record as the live view tells it. */
export interface Kept {
  readonly key: string;
  readonly status: 'IN_PROGRESS' | 'SUCCEEDED' | 'FAILED';
  readonly executions: number;
  /** By this page's clock, in ms; how long the lease was when it began. */
  readonly leaseEnds?: number;
  readonly lease?: number;
  readonly answer?: unknown;
}

/** A line of the gateway's book. */
export interface Line {
  readonly gatewayKey: string;
  readonly attempt: number;
  readonly status: 'approved' | 'declined' | 'unreadable';
  readonly chargeId?: string;
  readonly amount?: number;
  readonly currency?: string;
  readonly declineCode?: string;
}

/** The lines with money in them. */
export const charges = (book: readonly Line[]): Line[] => book.filter(({ status }) => status === 'approved');

/** An order as the service tells it. */
export interface Order {
  readonly orderId: string;
  readonly status: 'PLACED' | 'PAYMENT_PENDING' | 'PAID' | 'CANCELLED';
  readonly amount: number;
  readonly currency: string;
  readonly paidAt?: string;
  readonly paymentId?: string;
}

/** All that the page has seen of one order. It survives a reload, which is one of the things to try. */
export interface Story {
  cart: Record<string, number>;
  on: string[];
  order?: Order | undefined;
  steps: Step[];
  /** Requests that are under way, by number: a reload loses their answers. */
  open: Record<number, string>;
  records: Kept[];
  book: Line[];
  /** How many charges stood there when the gateway was asked last. */
  had?: number;
  /** The keys of this order's requests, each with the first request under it. */
  keys: Record<string, string>;
  /** What is still to come after a reload. */
  paying?: boolean;
}

const name = 'kakutei-shop';

const fresh = (): Story => ({ cart: { sencha: 2 }, on: [], steps: [], open: {}, records: [], book: [], keys: {} });

/** The story that this tab was in the middle of, or a new one. */
export function remembered(): Story {
  try {
    return { ...fresh(), ...JSON.parse(sessionStorage.getItem(name) ?? '{}') };
  } catch {
    return fresh();
  }
}

/** Keeps the story; where nothing can be kept, a reload forgets it. */
export function remember(story: Story): void {
  try {
    sessionStorage.setItem(name, JSON.stringify(story));
  } catch {
    // a page without storage
  }
}

/** The same cart and switches, and nothing has happened yet. */
export const anew = ({ cart, on }: Story): Story => ({ ...fresh(), cart, on });
