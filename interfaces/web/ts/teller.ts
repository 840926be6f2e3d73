import type { Happened } from './live.js';
import { keptOf } from './live.js';
import { charges, type Step, type Story } from './story.js';
import { money, short } from './texts.js';
import type { Answered, Sent } from './wire.js';

/** The arrow of a request that goes out. first: what was sent under its key before. */
export function sentStep({ operation, key, body, who }: Sent, first: string | undefined): Step {
  const way = { from: 'client', to: 'service', tone: 'plain', who } as const;
  if (operation === 'PlaceOrder') return { ...way, says: 'place' };
  if (first === undefined) return { ...way, says: 'confirm', values: { key: short(key) } };
  if (first === body) return { ...way, says: 'again', values: { key: short(key) } };
  const { amount, currency } = JSON.parse(body) as { amount: number; currency: string };
  return { ...way, says: 'other', values: { key: short(key), amount: money(amount, currency) } };
}

/** The arrow of an answer. */
export function answerStep({ who }: Sent, { status, replayed, code = '' }: Answered, thrown: boolean): Step {
  const way = { from: 'service', to: 'client', who } as const;
  if (thrown) return { ...way, says: 'thrown', values: { status }, tone: 'bad', broken: true };
  if (replayed) return { ...way, says: 'same', values: { status, code }, tone: 'replay' };
  if (status === 201) return { ...way, says: 'created', tone: 'plain' };
  return { ...way, says: code ? 'problem' : 'answer', values: { status, code }, tone: code ? 'bad' : 'plain' };
}

export const noAnswer = ({ who }: Pick<Sent, 'who'>, says: 'failed' | 'gone'): Step =>
  ({ from: 'service', to: 'client', says, tone: 'bad', broken: true, who });

/** The arrows of what happened to a record; the recovery's own are named. */
export const steps = (event: Happened, story: Story): Step[] =>
  arrows(event, story).map((step) => (event.unattended ? { ...step, who: 'recovery' } : step));

function arrows(event: Happened, story: Story): Step[] {
  const { what, operation, unanswered, refusal, record } = event;
  const n = record?.executions ?? 0;
  const amount = money(story.order?.amount ?? 0, story.order?.currency);
  const toRecord = { from: 'service', to: 'record', tone: 'plain' } as const;
  const fromRecord = { from: 'record', to: 'service' } as const;
  const toGateway = { from: 'service', to: 'gateway', tone: 'plain' } as const;
  switch (what) {
    case 'reserved':
      return [{ ...toRecord, says: 'reserve', values: { n } }, { ...toGateway, says: 'charge', values: { amount } }];
    case 'takeover':
      return [{ ...toRecord, says: 'takeover', values: { n } }, { ...toGateway, says: 'recharge', values: { amount } }];
    case 'called':
      return [gatewayStep(unanswered, story)];
    case 'abandoned':
      return [{ ...toRecord, says: 'abandon' }];
    case 'completed':
      if (operation === 'PlaceOrder') return [{ ...toRecord, says: 'placed' }];
      return [{ ...toRecord, says: refusal ? 'refuse' : 'complete', values: { status: record?.status ?? '' } }];
    case 'replayed':
      return [{ ...fromRecord, says: 'replay', tone: 'replay' }];
    case 'in_progress':
      return [{ ...fromRecord, says: 'busy', tone: 'bad' }];
    case 'mismatch':
      return [{ ...fromRecord, says: 'mismatch', tone: 'bad' }];
    case 'lease_lost':
      return [{ ...fromRecord, says: 'fenced', tone: 'bad' }];
    case 'commit_unknown':
      return [{ ...toRecord, says: 'doubt', tone: 'bad', broken: true }];
    default:
      return [];
  }
}

/** What came back from the gateway: its book was told of before. */
function gatewayStep(unanswered: boolean | undefined, { book, had }: Story): Step {
  const way = { from: 'gateway', to: 'service' } as const;
  if (unanswered) return { ...way, says: 'silence', tone: 'bad', broken: true };
  const line = book.at(-1);
  switch (line?.status) {
    case 'approved':
      if (charges(book).length === had) return { ...way, says: 'known', values: { amount: money(line.amount ?? 0, line.currency) }, tone: 'replay' };
      return { ...way, says: 'charged', values: { amount: money(line.amount ?? 0, line.currency) }, tone: 'money' };
    case 'declined':
      return { ...way, says: 'declined', values: { why: line.declineCode ?? '' }, tone: 'bad' };
    default:
      return { ...way, says: 'word', tone: 'plain' };
  }
}

/** Puts the record as it stands now into the story. */
export function keep(event: Happened, story: Story): void {
  if (event.what === 'reserved') delete story.had; // a new attempt has no charge yet
  if (event.what === 'takeover') story.had = charges(story.book).length;
  if (event.operation !== 'ConfirmPayment') return;
  const at = story.records.findIndex(({ key }) => key === event.idempotencyKey);
  const record = keptOf(event, story.records[at]);
  if (!record) return;
  if (at < 0) story.records.push(record);
  else story.records[at] = record;
}
