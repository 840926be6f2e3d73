import { html } from './dom.js';
import { text } from './texts.js';

/** What can be made to go wrong. Of the gateway's only one at a time: it has one way to answer. */
export const switches = {
  client: ['double', 'lose', 'reload', 'tabs'],
  gateway: ['slow', 'decline', 'gateway'],
  after: ['reuse', 'other'],
} as const;

/** Draws the switches into their groups and tells which ones are on, whenever that changes. */
export function drawSwitches(on: readonly string[], changed: (on: string[]) => void): void {
  const boxes: HTMLInputElement[] = [];
  const tell = (): void => changed(boxes.filter(({ checked }) => checked).map(({ value }) => value));
  for (const [group, names] of Object.entries(switches)) {
    const into = document.getElementById(`group-${group}`)!.parentElement!;
    for (const name of names) {
      const box = html('input', { type: 'checkbox', role: 'switch', value: name, id: `switch-${name}`, 'aria-describedby': `about-${name}` });
      box.checked = on.includes(name);
      box.onchange = () => {
        if (group === 'gateway' && box.checked) {
          for (const other of boxes) if (other !== box && (names as readonly string[]).includes(other.value)) other.checked = false;
        }
        tell();
      };
      boxes.push(box);
      into.append(html('div', { class: 'switch' }, box,
        html('label', { for: box.id }, text(`shop.switch.${name}.name`)),
        html('small', { id: `about-${name}` }, text(`shop.switch.${name}.about`))));
    }
  }
}
