import { html } from './dom.js';
import { text } from './texts.js';

/** Where the lab shows what becomes of the same mishap without the part that has just held. */
const designs: Readonly<Record<string, string>> = {
  double: 'nokey?storm=double_click',
  tabs: 'lookup?storm=double_click',
  gateway: 'newgatewaykey?storm=crash_after_charge',
  reload: 'onlyrecord?storm=new_key',
  lose: 'nokey?storm=lost_answer',
  slow: 'nofence?storm=slow_holder',
  reuse: 'nofingerprint?storm=key_reused',
  other: 'noactor?storm=stranger',
};

/** What would have happened without it, for the first of what is switched on. */
export function without(on: readonly string[]): HTMLElement {
  const name = Object.keys(designs).find((name) => on.includes(name)) ?? 'plain';
  return html('p', { id: 'without' }, text(`shop.without.${name}`), ' ',
    html('a', { href: `/lab/${designs[name] ?? designs['lose']}` }, text('shop.without.see')));
}
