/** Whether a text can be an idempotency key: 1 to 255 visible ASCII characters except " \ , ; and neither "." nor "..",
 * which no URL carries. docs/idempotency-keys.json has examples. */
export const isKey = (text: unknown): text is string =>
  typeof text === 'string' && /^(?!\.\.?$)[!#-+\--:<-[\]-~]{1,255}$/.test(text);

/** A new key: 128 random bits. (Outside of secure contexts there is no randomUUID.) */
export const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');
