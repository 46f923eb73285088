// One resource: who wrote, who was refused, and who held leases, from the top to the bottom as time passes.

import { at, element, facts, text } from './build.js';
import { kindOf, reasonOf } from './refusals.js';
import { client, clock, count, moment } from './words.js';

const EVENTS_MAX = 30, LANES_MAX = 4, OTHERS = 'others';

let part = null, seen = 0;

export function showTimeline(latest) {
  if (latest) [part, seen] = [latest, performance.now()];
  const passed = performance.now() - seen;
  if (!part) return;
  if (latest) {
    text(at('resource-key'), part.key);
    at('resource-facts').replaceChildren(facts(recordFacts(part.record)));
    at('resource-events').replaceChildren(sequence(events(part)));
  }
  at('resource-leases').replaceChildren(leaseAxis(part, passed));
}

export const forgetTimeline = () => { part = null; };

function recordFacts(record) {
  return [
    ['Version', String(record.version)],
    ['Tag', record.known?.tag ?? record.known?.representation],
    ['Write in flight', record.write_in_flight && 'yes'],
    ['Doubt', record.doubt && `the outcome of a write is not known; it holds others back for ${clock(record.doubt.remaining_ms)}`],
  ];
}

/* Writes and refusals, the oldest first. */
function events({ writes, refusals }) {
  const written = writes.map(write => ({
    at: write.at, who: client(write), asks: write.method,
    answer: answerOf(write), kind: write.status === 0 || write.status >= 500 ? 'failures' : write.verdict === 'answered' ? 'local' : 'passed',
  }));
  const refused = refusals.map(refusal => ({
    at: refusal.at, who: client(refusal), asks: refusal.method + (refusal.sent_tag ? `, based on ${refusal.sent_tag}` : ', without a tag'),
    answer: `${refusal.status} ${reasonOf(refusal)}` + (refusal.lease?.holder ? `, held by ${refusal.lease.holder}` : ''), kind: kindOf(refusal),
  }));
  return [...written, ...refused].sort((one, other) => one.at < other.at ? -1 : 1).slice(-EVENTS_MAX);
}

function answerOf(write) {
  if (write.status === 0) return 'no answer';
  if (write.version !== null) return `${write.status}, version ${write.version}`;
  return `${write.status}, ${{ answered: 'answered here', replayed: 'the answer of the first attempt' }[write.verdict] ?? 'not applied'}`;
}

/* The order of the lines: clients at both sides of ifmatch, in the order in which they appear. */
function lanesOf(happened) {
  const clients = [...new Set(happened.map(event => event.who))];
  const named = clients.length > LANES_MAX ? [...clients.slice(0, LANES_MAX - 1), OTHERS] : clients;
  const left = Math.ceil(named.length / 2);
  return { lanes: [...named.slice(0, left), null, ...named.slice(left)], middle: left };
}

/* A sequence diagram: a line of life for each client and for ifmatch, an arrow for each request and answer. */
function sequence(happened) {
  if (!happened.length) return element('div', { class: 'empty' }, element('b', {}, 'No write and no refusal'), 'This process has seen none lately. Reads are not listed.');
  const { lanes, middle } = lanesOf(happened);
  const laneOf = event => { const own = lanes.indexOf(event.who); return own < 0 ? lanes.indexOf(OTHERS) : own; };
  const heads = lanes.map((lane, place) => placed(element('span', { class: lane === null ? 'lane proxy' : 'lane' }, lane ?? 'ifmatch'), place + 2, 1));
  const rows = happened.map(event => element('li', {}, ...lanes.map((_, place) => placed(element('i', { class: 'life', 'aria-hidden': 'true' }), place + 2, 1, true)),
    element('time', { dateTime: event.at, title: event.at }, moment(event.at)),
    element('span', { class: 'hidden' }, `${event.who}: `),
    ...arrows(event, laneOf(event), middle)));
  const drawn = element('div', { class: 'sequence' },
    element('div', { class: 'lanes', 'aria-hidden': 'true' }, ...heads),
    element('ol', { 'aria-label': 'What happened, the oldest first' }, ...rows));
  drawn.style.setProperty('--lanes', lanes.length);
  return drawn;
}

function arrows(event, lane, middle) {
  const [first, last] = [Math.min(lane, middle), Math.max(lane, middle)];
  const isLeft = lane < middle, span = last - first + 1;
  const request = element('span', { class: 'arrow ' + (isLeft ? 'to-right' : 'to-left') }, event.asks);
  const answer = element('span', { class: `arrow answer ${event.kind} ` + (isLeft ? 'to-left' : 'to-right') }, event.answer);
  return [placed(request, first + 2, span), placed(answer, first + 2, span)].map((arrow, row) => {
    arrow.style.gridRow = String(row + 1);
    return arrow;
  });
}

function placed(made, column, span, isTall = false) {
  made.style.gridColumn = `${column} / span ${span}`;
  made.style.setProperty('--span', span);
  if (isTall) made.style.gridRow = '1 / span 2';
  return made;
}

/* The leases as bars on an axis of time. */
function leaseAxis({ record }, passed) {
  if (!record.leases.length) return element('div', { class: 'empty' }, element('b', {}, 'No lease is held or remembered'));
  const leases = record.leases.map(lease => {
    const remaining = lease.remaining_ms === null ? null : lease.remaining_ms - passed;
    return { ...lease, age: lease.age_ms + passed, remaining, isHeld: lease.state === 'leased' || lease.state === 'breaking' };
  });
  const past = Math.max(...leases.map(lease => lease.age)), ahead = Math.max(past / 4, ...leases.map(lease => lease.isHeld ? lease.remaining ?? 0 : 0));
  const percent = offset => 100 * (past + offset) / (past + ahead);
  const bars = leases.map(lease => {
    const end = lease.isHeld ? lease.remaining ?? ahead : Math.min(0, (lease.duration_ms ?? past) - lease.age);
    const bar = element('i', { class: lease.isHeld ? 'passed' : 'over' });
    bar.style.left = percent(-lease.age) + '%';
    bar.style.width = Math.max(0.5, percent(end) - percent(-lease.age)) + '%';
    const ends = !lease.isHeld ? lease.state : lease.remaining === null ? 'no end' : `${clock(lease.remaining)} left`;
    return element('li', {}, element('span', {}, `${lease.holder ?? 'no label'}, fence ${lease.fence}: ${ends}`), element('div', { class: 'bar-row' }, bar));
  });
  const now = element('i', { class: 'now' });
  now.style.left = percent(0) + '%';
  const nowWord = element('span', { class: 'now-word' }, 'now');
  nowWord.style.left = percent(0) + '%';
  return element('div', { class: 'lease-axis' },
    element('ol', { 'aria-label': count(leases.length, 'lease', 'leases') }, ...bars, ),
    element('div', { class: 'axis', 'aria-hidden': 'true' }, element('span', {}, `${clock(past)} ago`), nowWord, now, element('span', {}, `in ${clock(ahead)}`)));
}
