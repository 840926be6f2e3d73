/** What goes into the places of a text. */
export type Values = Readonly<Record<string, string | number>>;

const texts: Readonly<Record<string, string>> = JSON.parse(document.getElementById('texts')?.textContent ?? '{}');

/** The text under the key, in the page's language; a place like {name} takes the value of that name. */
export function text(key: string, values: Values = {}): string {
  const found = texts[key];
  if (found === undefined) throw new Error(`there is no text ${key}`);
  return found.replace(/\{([a-z]+)\}/gi, (place, name: string) => String(values[name] ?? place));
}

/** Money as the reader writes it. */
export const money = (amount: number, currency = 'JPY'): string => {
  const format = new Intl.NumberFormat(document.documentElement.lang, { style: 'currency', currency, currencyDisplay: 'narrowSymbol' });
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 0));
};

/** A key or id, short enough for a diagram. */
export const short = (id: string): string => (id.length > 9 ? `…${id.slice(-4)}` : id);
