import { html, svg } from './dom.js';
import { lanes, type Lane, type Step } from './story.js';
import { text } from './texts.js';

/** The sequence diagram: a lane for each who takes part, an arrow for each step, in the order in which it was seen. */
export class Diagram {
  private readonly head = svg('svg', { class: 'head', 'aria-hidden': true });
  private readonly body = svg('svg', { class: 'body', role: 'img' });
  private steps: readonly Step[] = [];
  private drawn = 0;
  private bottom = 0;

  constructor(private readonly rows: HTMLElement, private readonly list: HTMLElement) {
    rows.append(this.head, this.body);
    new ResizeObserver(() => this.redraw()).observe(rows);
  }

  /** Shows these steps; those that were there stay as they are. */
  show(steps: readonly Step[]): void {
    const more = steps.length >= this.drawn && this.drawn > 0;
    this.steps = steps;
    if (!more) return this.redraw();
    this.draw();
    this.rows.scrollTo({ top: this.rows.scrollHeight });
  }

  private redraw(): void {
    this.drawn = 0;
    this.bottom = this.em() * 0.4;
    this.list.replaceChildren();
    const width = this.width();
    const em = this.em();
    this.head.replaceChildren();
    this.head.setAttribute('width', String(width));
    this.head.setAttribute('height', String(em * 2));
    const names = lanes.map((lane) => text(`shop.lanes.${lane}`));
    const room = this.x('service') - this.x('client') - em * 0.4;
    const fit = Math.min(1, room / Math.max(...names.map((name) => this.measured(name)))); // on a telephone they are smaller
    for (const [n, lane] of lanes.entries()) {
      const half = (this.measured(names[n]!) * fit) / 2;
      const x = Math.min(Math.max(this.x(lane), half), width - half);
      this.head.append(svg('text', { x, y: em * 1.35, 'text-anchor': 'middle', class: 'lane', 'font-size': em * fit }, names[n]!));
    }
    this.body.replaceChildren(svg('title', {}, text('shop.sequence.title')), arrowheads(em));
    for (const lane of lanes) this.body.append(svg('line', { class: 'life', x1: this.x(lane), x2: this.x(lane), y1: 0, y2: 0 }));
    this.body.setAttribute('width', String(width));
    this.draw();
    this.rows.scrollTo({ top: this.rows.scrollHeight });
  }

  private draw(): void {
    const before = this.drawn;
    for (const step of this.steps.slice(this.drawn)) {
      this.body.append(this.arrow(step, before > 0));
      this.list.append(html('li', { class: step.tone }, sentence(step)));
      this.drawn++;
    }
    const height = Math.max(this.bottom + this.em(), this.em() * 10);
    this.body.setAttribute('height', String(height));
    for (const life of this.body.querySelectorAll('.life')) life.setAttribute('y2', String(height));
  }

  private arrow(step: Step, isNew: boolean): SVGGElement {
    const em = this.em();
    const [from, to] = [this.x(step.from), this.x(step.to)];
    const group = svg('g', {
      class: `step ${step.tone}${step.broken ? ' broken' : ''}${isNew ? ' new' : ''}`,
      'data-says': step.says, 'data-tone': step.tone,
    });
    const lines = this.wrapped(label(step));
    const middle = Math.min(Math.max((from + to) / 2, 0), this.width());
    for (const line of lines) {
      this.bottom += em * 1.2;
      const words = svg('text', { y: this.bottom, x: middle, 'text-anchor': 'middle' }, line);
      group.append(words);
      this.within(words, line, middle);
    }
    this.bottom += em * 0.45;
    const direction = Math.sign(to - from);
    const end = step.broken ? from + (to - from) * 0.62 : to - direction * 2;
    group.append(svg('line', {
      class: 'shaft', x1: from, x2: end, y1: this.bottom, y2: this.bottom,
      'marker-end': step.broken ? undefined : `url(#head-${step.tone})`,
    }));
    if (step.broken) {
      const r = em * 0.4;
      const [x, y] = [end + direction * r, this.bottom];
      group.append(svg('path', { class: 'cross', d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` }));
    }
    this.bottom += em * 0.3;
    return group;
  }

  /** Moves words that would stand out of the diagram back into it. */
  private within(words: SVGTextElement, line: string, middle: number): void {
    const half = this.measured(line) / 2;
    const x = Math.min(Math.max(middle, half + 4), Math.max(this.width() - half - 4, half + 4));
    words.setAttribute('x', String(x));
  }

  /** The label in lines that fit. Japanese breaks anywhere, other words between them. */
  private wrapped(label: string): string[] {
    const room = this.width() - 12;
    const lines: string[] = [];
    let line = '';
    for (const part of label.match(/[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+/g) ?? []) {
      if (line && this.measured(line + part) > room) {
        lines.push(line.trim());
        line = '';
      }
      line += part;
    }
    return [...lines, line.trim()];
  }

  private measured(words: string): number {
    context.font = `700 ${this.em()}px system-ui, sans-serif`;
    return context.measureText(words).width;
  }

  /** The size of the letters, which all else follows, in CSS pixels: on a projector they are larger. */
  private em(): number {
    return parseFloat(getComputedStyle(this.rows).fontSize);
  }

  private x(lane: Lane): number {
    const edge = Math.min(this.width() * 0.11, this.em() * 6);
    return edge + ((this.width() - 2 * edge) * lanes.indexOf(lane)) / (lanes.length - 1);
  }

  private width(): number {
    return Math.max(this.rows.clientWidth, 260);
  }
}

const context = document.createElement('canvas').getContext('2d')!;

const label = ({ says, values, who }: Step): string =>
  (who ? `${text(`shop.who.${who}`)}: ` : '') + text(`shop.steps.${says}`, values);

const sentence = (step: Step): string =>
  `${text(`shop.lanes.${step.from}`)} ${step.broken ? '⇢ ✕' : '→'} ${text(`shop.lanes.${step.to}`)}: ${label(step)}`;

function arrowheads(em: number): SVGDefsElement {
  return svg('defs', {}, ...['plain', 'replay', 'bad', 'money'].map((tone) =>
    svg('marker', { id: `head-${tone}`, class: tone, viewBox: '0 0 10 10', refX: 9, refY: 5, markerWidth: em * 0.85, markerHeight: em * 0.85, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' },
      svg('path', { d: 'M0 0L10 5L0 10z' }))));
}
