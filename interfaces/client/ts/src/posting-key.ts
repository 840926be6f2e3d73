/** What a journal entry's key is made of. */
export interface SourceDocument {
  readonly companyId: string;
  readonly sourceDocumentType:
    | 'sales_invoice'
    | 'purchase_bill'
    | 'expense_claim'
    | 'adjustment'
    | 'opening_balance';
  readonly sourceDocumentId: string;
  /** 0 if there is none. */
  readonly version?: number | null;
  /** YYYY-MM-DD. */
  readonly serviceDate: string;
  /** Minor units; negative for a credit note. */
  readonly total: number;
}

/** Says that no posting key can be made of a document. */
export class NoPostingKey extends Error {
  override readonly name = 'NoPostingKey';

  constructor(
    /** The first component that is missing or not valid. */
    readonly field: keyof SourceDocument,
  ) {
    super(`no posting key can be made of this ${field}`);
  }
}

/** The posting key: SHA-256, in lower-case hex, of the document's text. The service makes the same one;
 * docs/posting-keys.json has inputs with their keys. Error: NoPostingKey. It needs a secure context. */
export async function postingKey(document: SourceDocument): Promise<string> {
  const text = new TextEncoder().encode(postingKeyText(document));
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** companyId|sourceDocumentType|sourceDocumentId|version|serviceDate|total. Error: NoPostingKey. */
export function postingKeyText(document: SourceDocument): string {
  const version = document.version ?? 0;
  for (const [field, valid] of Object.entries(components) as [keyof SourceDocument, (value: unknown) => boolean][]) {
    if (!valid(field === 'version' ? version : document[field])) throw new NoPostingKey(field);
  }
  const { companyId, sourceDocumentType, sourceDocumentId, serviceDate, total } = document;
  // Integers up to 2^53 are written without an exponent.
  return [companyId, sourceDocumentType, sourceDocumentId, version, serviceDate, total].join('|');
}

const types = ['sales_invoice', 'purchase_bill', 'expense_claim', 'adjustment', 'opening_balance'];

const matches = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value);

// "|" would let two documents have one key. Lengths count characters: the pattern has the flag u.
const isDocumentId = matches(/^(?!\p{White_Space})[^|\p{Cc}\p{Cs}]{1,128}(?<!\p{White_Space})$/u);

const components: Record<keyof SourceDocument, (value: unknown) => boolean> = {
  companyId: matches(/^[!-?A-{}~]{1,128}$/),
  sourceDocumentType: (value) => types.includes(value as string),
  sourceDocumentId: isDocumentId,
  version: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31,
  serviceDate: (value) => matches(/^\d{4}-\d\d-\d\d$/)(value) && isDay(value as string),
  total: (value) => Number.isSafeInteger(value) && value !== 0,
};

function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(+day) && day.toISOString().startsWith(text);
}
