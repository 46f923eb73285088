// The routes: how their requests ended in the last hour, and their settings.

import { ask } from './ask.js';
import { at, button, detail, element, facts, number, table, text } from './build.js';
import { MEANINGS, MINUTES, added, bars, chart, inWords, sum } from './chart.js';
import { count, rate, whole } from './words.js';

const RATE_MS = 10_000;
const LATELY_MINUTES = 5;

let routes = [], history = null, samples = [], onLately = () => {};

/* Tells what came of the requests of the last minutes. */
export const tellLately = listener => { onLately = listener; };

export function showRoutes(part) {
  routes = part.routes;
  // A restarted process counts from zero.
  const before = samples.at(-1)?.totals;
  if (before && routes.some(route => route.requests < (before.get(route.route) ?? 0))) samples = [];
  show();
}

export function showHistory(part) {
  history = part;
  show();
}

/* Takes a sample for the rates, also if nothing has changed. */
export function sample() {
  const now = performance.now();
  samples.push({ now, totals: new Map(routes.map(route => [route.route, route.requests])) });
  while (samples.length > 2 && now - samples[1].now >= RATE_MS) samples.shift();
  show();
}

export const forgetRates = () => { samples = []; };

const counts = route => MEANINGS.map(meaning => route[meaning]);

/* The minutes of a route with the current one. */
function minutesOf(route, known) {
  const current = counts(route).map((total, place) => total - (known?.until_now[place] ?? 0));
  return [...(known?.minutes ?? []), current.map(value => Math.max(0, value))].slice(-MINUTES);
}

function rateOf(route) {
  const first = samples[0], last = samples.at(-1), seconds = first ? (last.now - first.now) / 1000 : 0;
  const before = first?.totals.get(route.route);
  return seconds > 0 && before !== undefined ? Math.max(0, (last.totals.get(route.route) - before) / seconds) : 0;
}

const word = name => name || 'no route matched';

const COLUMNS = [
  { title: 'Route', show: (cell, row) => showName(cell, row) },
  { title: 'Policy', class: 'quiet wide', show: (cell, row) => text(cell, row.policy) },
  { title: 'Requests / s', class: 'n wide', show: (cell, row) => number(cell, row.rate, rate(row.rate)) },
  { title: 'Last hour', class: 'small-bars', show: showBars },
  { title: 'Failed', class: 'n', show: (cell, row) => showCount(cell, row, 4) },
  { title: 'Conflicts', class: 'n', show: (cell, row) => showCount(cell, row, 2) },
  { title: 'Refused', class: 'n wide', show: (cell, row) => showCount(cell, row, 3) },
  { title: 'Requests', class: 'n', show: (cell, row) => number(cell, sum(row.counts), whole(sum(row.counts))) },
];
const IDLE = [
  { title: 'Route', show: (cell, row) => showName(cell, row) },
  { title: 'Policy', class: 'quiet', show: (cell, row) => text(cell, row.policy) },
  { title: 'Requests since the start', class: 'n', show: (cell, row) => number(cell, row.total, whole(row.total)) },
];

function showName(cell, row) {
  const shown = button(cell, row, { class: 'link' }, showRoute);
  text(shown, word(row.name));
}

function showCount(cell, row, place) {
  number(cell, row.counts[place], whole(row.counts[place]));
  cell.classList.toggle('bad', MEANINGS[place] === 'failures' && row.counts[place] > 0);
}

function showBars(cell, row) {
  const label = `${word(row.name)} in the last hour: ${inWords(row.counts)}`;
  const mark = JSON.stringify(row.minutes);
  if (cell.dataset.mark === mark) return;
  cell.dataset.mark = mark;
  cell.replaceChildren(bars(row.minutes, label));
}

function rows() {
  const known = new Map((history?.routes ?? []).map(route => [route.route, route]));
  return routes.map(route => {
    const minutes = minutesOf(route, known.get(route.route));
    const policy = route.policy ?? (route.route ? 'not in the configuration' : '');
    return { name: route.route, policy, minutes, counts: added(minutes), rate: rateOf(route), total: route.requests };
  });
}

/* Trouble first. */
const order = (one, other) => other.counts[4] - one.counts[4]
  || other.counts[2] + other.counts[3] - one.counts[2] - one.counts[3]
  || sum(other.counts) - sum(one.counts)
  || (one.name < other.name ? -1 : 1);

function show() {
  if (!history) return;
  const all = rows(), active = all.filter(row => sum(row.counts)).sort(order), idle = all.filter(row => !sum(row.counts));
  const longest = Math.max(1, ...all.map(row => row.minutes.length));
  const minute = place => added(all.map(row => row.minutes.at(-1 - place) ?? MEANINGS.map(() => 0)));
  const together = Array.from({ length: longest }, (_, place) => minute(longest - 1 - place));
  const mark = JSON.stringify(together);
  if (at('hour').dataset.mark !== mark) {
    at('hour').dataset.mark = mark;
    at('hour').replaceChildren(chart(together, 'Requests of all routes'));
  }
  table(at('routes-table'), 'Routes', COLUMNS, active, [element('b', {}, 'No requests'), 'Routes appear here with their first request of the hour.']);
  at('idle').hidden = idle.length === 0;
  text(at('idle').querySelector('summary'), count(idle.length, 'idle route', 'idle routes') + ' without a request in the last hour');
  if (idle.length) table(at('idle-table'), 'Idle routes', IDLE, idle, []);
  onLately(added(together.slice(-LATELY_MINUTES)), LATELY_MINUTES);
}

async function showRoute(row) {
  const name = row.name, current = rows().find(other => other.name === name) ?? row;
  const { routes: settings } = await ask('/routes');
  const own = settings.find(route => route.name === name);
  const value = setting => typeof setting === 'string' ? setting : JSON.stringify(setting);
  const pairs = own ? Object.entries(own).filter(([, setting]) => setting !== null).map(([key, setting]) => [key, value(setting)]) : [];
  detail(`Route ${word(name)}`, chart(current.minutes, word(name)),
    own ? facts(pairs) : element('p', {}, 'The configuration has no such route.'));
}
