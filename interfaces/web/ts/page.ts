import { createCheckout, Refused, UnknownOutcome, type Payment } from '../../client/ts/src/index.js';
import { bookCard, leaseLeft, orderCard, recordCard } from './cards.js';
import { drawCart, orderOf, total } from './cart.js';
import { actor, sleep, stranger, token } from './customer.js';
import { Diagram } from './diagram.js';
import { byId, html } from './dom.js';
import { endBefore, look, type Happened } from './live.js';
import { anew, remember, remembered, type Order, type Step } from './story.js';
import { drawSwitches } from './switches.js';
import { answerStep, keep, noAnswer, sentStep, steps } from './teller.js';
import { money, text, type Values } from './texts.js';
import type { FromTab, ToTab } from './tab.js';
import { wire, type Answered, type Sent, type Watcher } from './wire.js';

/** How the gateway treats the payment (docs/contract.md, Orders). A real one takes its time, too. */
const methods = {
  usual: 'pm_slow_700', slow: 'pm_slow_4000', decline: 'pm_declined', gateway: 'pm_lost_answer',
  twice: 'pm_slow_1500', reload: 'pm_slow_2500',
};

/** Between the two clicks, in ms. */
const doubleClick = 120;

export function startShop(): void {
  let story = remembered();
  let isLive = false;
  let busy = false;
  let reloading = false;
  let leaving = false;
  let firstSent: (sent: Sent) => void = () => {};
  const diagram = new Diagram(byId('rows'), byId('list'));

  const say = (says: string, values?: Values): void => {
    const words = text(`shop.told.${says}`, values);
    if (byId('told').textContent !== words) byId('told').textContent = words;
  };

  const render = (): void => {
    drawCart(story.cart, !!story.order, (cart) => {
      story.cart = cart;
      render();
    });
    const { order } = story;
    byId('order').replaceChildren(orderCard(order));
    byId('record').replaceChildren(recordCard(story));
    byId('book').replaceChildren(bookCard(story));
    diagram.show(story.steps);
    byId('guide').hidden = story.steps.length > 0;
    byId<HTMLButtonElement>('place').hidden = !!order;
    byId<HTMLButtonElement>('place').disabled = busy || !total(story.cart);
    byId<HTMLButtonElement>('anew').hidden = !order;
    byId<HTMLButtonElement>('anew').disabled = busy;
    const pay = byId<HTMLButtonElement>('pay');
    pay.disabled = !order || busy || order.status === 'PAID';
    pay.textContent = order ? text('shop.paysum', { amount: money(order.amount, order.currency) }) : text('shop.pay');
    remember(story);
  };

  const add = (...more: Step[]): void => {
    story.steps.push(...more);
    render();
  };

  // An answer is drawn behind what the service did for it. Both come on ways of their own, the one over the live view may
  // be a moment later.
  const ended = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  const endOf = async (key: string, what: string): Promise<void> => {
    const name = `${what} ${key}`;
    const left = ended.get(name) ?? 0;
    if (left > 0) return void ended.set(name, left - 1);
    const end = new Promise<void>((resolve) => waiting.set(name, [...(waiting.get(name) ?? []), resolve]));
    return Promise.race([end, sleep(1000)]);
  };
  const hasEnded = (key: string, what: string): void => {
    const name = `${what} ${key}`;
    const next = waiting.get(name)?.shift();
    if (next) next();
    else ended.set(name, (ended.get(name) ?? 0) + 1);
  };

  const watcher: Watcher = {
    sent(sent) {
      const first = sent.who === 'stranger' ? undefined : story.keys[sent.key]; // a stranger's key is another one
      story.keys[sent.key] ??= sent.body;
      story.open[sent.number] = sent.who ?? '';
      add(sentStep(sent, first));
      if (sent.operation === 'ConfirmPayment' && !sent.who) firstSent(sent);
    },
    async answered(sent: Sent, answer: Answered, thrown: boolean) {
      const end = endBefore(answer);
      if (isLive && end && sent.who !== 'stranger') await endOf(sent.key, end);
      delete story.open[sent.number];
      add(answerStep(sent, answer, thrown));
    },
    failed(sent) {
      delete story.open[sent.number];
      add(noAnswer(sent, leaving ? 'gone' : 'failed'));
    },
  };
  const way = wire(watcher);
  const secondWay = wire(watcher, 'second');
  const strangersWay = wire(watcher, 'stranger');
  const checkout = createCheckout({ url: '', token, fetch: way.fetch });

  const readOrder = async (): Promise<void> => {
    const id = story.order?.orderId;
    if (!id) return;
    const answer = await fetch(`/api/orders/${id}`, { headers: { Authorization: `Bearer ${token()}` } });
    const order = (await answer.json()) as Order;
    if (answer.ok && story.order?.orderId === id) {
      story.order = order;
      render();
    }
  };

  const watch = look(actor, {
    happened(event: Happened) {
      if (!(event.idempotencyKey in story.keys)) return; // another page's
      keep(event, story);
      add(...steps(event, story));
      hasEnded(event.idempotencyKey, event.what);
      if (event.operation === 'ConfirmPayment') readOrder().catch(() => {}); // the next event tells it anew
      if (event.what === 'reserved' && reloading) location.reload();
    },
    booked(orderId, lines) {
      if (orderId !== story.order?.orderId) return;
      story.book = lines;
      render();
    },
    connected(open) {
      isLive = open;
      byId('live').textContent = open ? '' : text('shop.live.off');
      document.documentElement.dataset['live'] = open ? 'on' : 'off';
    },
  });

  // A browser opens six connections to a service, for all of its tabs: those that nobody sees must not hold them.
  const watchWhileSeen = (): void => watch(busy || !document.hidden);
  document.addEventListener('visibilitychange', watchWhileSeen);

  const post = (url: string, key: string, body: string, who = actor): Request => new Request(url, {
    method: 'POST', body,
    headers: { Authorization: `Bearer demo-${who}`, 'Content-Type': 'application/json', 'Idempotency-Key': key },
  });

  const place = async (): Promise<void> => {
    busy = true;
    render();
    try {
      const answer = await way.fetch(post('/api/orders', crypto.getRandomValues(new Uint32Array(4)).join('-'), orderOf(story.cart)));
      if (answer.ok) {
        story.order = (await answer.json()) as Order;
        say('placed');
      } else say('unplaced');
    } catch {
      say('unplaced');
    }
    busy = false;
    render();
    byId('pay').focus();
  };

  const payment = (): Payment => {
    const on = (name: string): boolean => story.on.includes(name);
    const method = on('decline') ? methods.decline : on('gateway') ? methods.gateway : on('slow') ? methods.slow
      : on('reload') ? methods.reload : on('double') || on('tabs') ? methods.twice : methods.usual;
    return { amount: story.order!.amount, currency: story.order!.currency, paymentMethod: method };
  };

  /** What a page does that sends each click: the same request once more, until its answer is final. */
  const insist = async ({ url, key, body }: Sent): Promise<void> => {
    for (let n = 0; n < 20; n++) {
      const answer = await secondWay.fetch(post(url, key, body)).catch(() => undefined);
      if (answer && answer.status !== 409 && answer.status !== 503) return;
      await sleep(1000 * Number(answer?.headers.get('retry-after') ?? 1));
    }
  };

  const pay = async (): Promise<void> => {
    story.paying = true;
    const [seen, rows] = [byId('seen'), byId('rows')];
    const end = rows.getBoundingClientRect().top + parseFloat(getComputedStyle(rows).maxHeight); // when it has grown
    if (seen.getBoundingClientRect().top < 0 || end > innerHeight) seen.scrollIntoView();
    reloading = story.on.includes('reload');
    if (story.on.includes('lose')) way.loseNext();
    const first = new Promise<Sent>((resolve) => (firstSent = resolve));
    const others: Promise<unknown>[] = [];
    if (story.on.includes('double')) others.push(first.then((sent) => sleep(doubleClick).then(() => insist(sent))));
    if (story.on.includes('tabs')) others.push(payInTab({ orderId: story.order!.orderId, payment: payment() }));
    await finish(first, others);
  };

  /** Waits for the payment, and then does what comes after it. */
  const finish = async (first: Promise<Sent>, others: Promise<unknown>[]): Promise<void> => {
    const { orderId } = story.order!;
    busy = true;
    render();
    say('paying');
    const hush = checkout.subscribe(orderId, (state) => {
      if (state.status === 'waiting') say('waiting', { seconds: state.seconds });
      if (state.status === 'sending') say('paying');
    });
    let ending: [says: string, values?: Values];
    try {
      await checkout.confirmPayment(orderId, payment());
      ending = ['paid'];
    } catch (error) {
      if (error instanceof Refused) ending = [error.problem.code === 'payment_declined' ? 'declined' : 'refused', { code: error.problem.code }];
      else ending = [error instanceof UnknownOutcome ? 'unknown' : 'unpaid'];
    }
    hush();
    await Promise.all(others);
    const sent = await Promise.race([first, sleep(0)]);
    if (sent && story.on.includes('reuse')) {
      const { amount, ...rest } = JSON.parse(sent.body) as Payment;
      await way.fetch(post(sent.url, sent.key, JSON.stringify({ amount: amount + 100, ...rest }))).catch(() => {});
    }
    if (sent && story.on.includes('other')) await strangersWay.fetch(post(sent.url, sent.key, sent.body, stranger)).catch(() => {});
    await readOrder().catch(() => {});
    busy = false;
    delete story.paying;
    say(...ending);
    render();
    watchWhileSeen();
  };

  let tab: { frame: HTMLIFrameElement; ready: Promise<void> } | undefined;
  let tabIsReady: () => void;
  let tabIsDone: () => void = () => {};
  let tabIsDrawn: Promise<void> | void;
  const drawTab = (): void => {
    if (!story.on.includes('tabs')) {
      tab = undefined;
      byId('tabs').replaceChildren();
    } else if (!tab) {
      const ready = new Promise<void>((resolve) => (tabIsReady = resolve));
      tab = { frame: html('iframe', { src: '/second-tab', title: text('shop.tab.title') }), ready };
      byId('tabs').replaceChildren(tab.frame);
    }
  };
  addEventListener('message', ({ origin, source, data }: MessageEvent<FromTab>) => {
    if (origin !== location.origin || source !== tab?.frame.contentWindow) return;
    if (data.kind === 'ready') tabIsReady();
    else if (data.kind === 'done') tabIsDone();
    else if (data.kind === 'answered') tabIsDrawn = watcher.answered(data.sent, data.answer, false);
    else watcher[data.kind](data.sent);
  });
  const payInTab = async (what: ToTab): Promise<void> => {
    const done = new Promise<void>((resolve) => (tabIsDone = resolve));
    await tab!.ready;
    tab!.frame.contentWindow!.postMessage(what, location.origin);
    await done;
    await tabIsDrawn; // what comes after the payment is drawn behind it
  };

  addEventListener('beforeunload', () => void (leaving = true)); // what is under way is aborted now
  drawSwitches(story.on, (on) => {
    story.on = on;
    drawTab();
    render();
  });
  byId('place').onclick = () => void place();
  byId('pay').onclick = () => void pay();
  byId('anew').onclick = () => {
    story = anew(story);
    byId('told').textContent = '';
    render();
    byId('place').focus();
  };
  setInterval(() => {
    const record = story.records.at(-1);
    const shown = document.querySelector('meter');
    if (!record || !shown) return;
    const left = leaseLeft(record);
    shown.value = left;
    byId('lease-left').textContent = left > 0 ? text('shop.record.left', { seconds: Math.ceil(left / 1000) }) : text('shop.record.over');
  }, 250);

  // After a reload: whatever was under way has lost its answer, and the client asks again under the key that it has kept.
  for (const who of Object.values(story.open)) story.steps.push(noAnswer({ who: who || undefined }, 'gone'));
  story.open = {};
  drawTab();
  render();
  if (story.order) readOrder().catch(() => {});
  if (story.order && story.paying) {
    void finish(new Promise<Sent>((resolve) => (firstSent = resolve)), []);
  }
}
