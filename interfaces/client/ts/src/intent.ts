import { isKey } from './key.js';
import { documentIn } from './policy.js';

/** One thing that the shopper wants to happen once. */
export interface Intent {
  readonly key: string;
  /** The exact request, which every try sends. None while the key has not been used: then the request may be another. */
  body?: string;
  /** Set before the first try, so that whoever finds the intent knows that it may have had its effect. */
  sent?: boolean;
}

/** Where intents are kept: localStorage, which the tabs of a page share, or sessionStorage, which is each tab's own. */
export type Keep = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export const prefix = 'kakutei:';

/** The intent that is written there. Whatever else is (another version's, a hand's) is none; of a request that is none any
 * more the key is left, and the page's own request goes out under it. */
export function intentIn(text: string | null | undefined): Intent | undefined {
  const said = documentIn(text ?? '');
  if (!isKey(said?.key)) return undefined;
  if (!documentIn(said.body)?.currency) delete said.body;
  return said;
}

/** The intents, by order. */
export interface Intents {
  readonly of: (orderId: string) => Intent | undefined;
  readonly keep: (orderId: string, intent: Intent) => void;
  /** Forgets the intent, unless another one stands there by now. */
  readonly drop: (orderId: string, intent: Intent) => void;
}

/** Intents in a storage. What a storage does not take (it is full, or forbidden) is remembered as long as the page lives. */
export function intentsIn(storage: Keep | undefined): Intents {
  const remembered = new Map<string, string>();
  const of = (orderId: string): Intent | undefined => {
    try {
      return intentIn(remembered.get(orderId) ?? storage!.getItem(prefix + orderId));
    } catch {
      return undefined;
    }
  };
  const write = (orderId: string, text: string): void => {
    try {
      if (text) storage!.setItem(prefix + orderId, text);
      else storage!.removeItem(prefix + orderId);
      remembered.delete(orderId);
    } catch {
      remembered.set(orderId, text);
    }
  };
  return {
    of,
    keep: (orderId, intent) => write(orderId, JSON.stringify(intent)),
    drop: (orderId, intent) => of(orderId)?.key === intent.key && write(orderId, ''),
  };
}

/** localStorage where there is one that this page may use. */
export function shared(): Keep | undefined {
  try {
    return globalThis.localStorage;
  } catch {
    return undefined;
  }
}
