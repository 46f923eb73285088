// Doubts, servers, the store and hot resources.

import { at, button, element, number, table, text, unfold } from './build.js';
import { showTile } from './tiles.js';
import { count, moment, time, whole } from './words.js';

const DOUBTS = [
  { title: 'Resource', class: 'key', show: (cell, row) => text(button(cell, row, { class: 'link' }, row.open), row.key) },
  { title: 'In doubt for', class: 'n', show: (cell, row) => text(cell, row.since === null ? '–' : time(row.since)) },
  { title: 'Until', class: 'n', show: (cell, row) => text(cell, moment(Date.now() + row.remaining)) },
  { title: 'Request', class: 'wide', show: (cell, row) => text(cell, row.request_id ?? '–') },
];

let doubts = null;
export function showDoubts(part, open) {
  if (part) doubts = { ...part, seen: performance.now() };
  if (!doubts) return;
  const passed = performance.now() - doubts.seen;
  const rows = doubts.doubts.map(doubt => ({
    ...doubt, open: row => open(row.key), name: doubt.key, since: doubt.since_ms === null ? null : doubt.since_ms + passed,
    remaining: Math.max(0, doubt.remaining_ms - passed),
  }));
  table(at('doubts-table'), 'Doubts', DOUBTS, rows, [element('b', {}, 'No write is in doubt'), 'If the backend breaks off in the middle of a write, the resource is held back and listed here until ', element('code', {}, 'late_write_window'), ' is over.']);
  const number = whole(rows.length) + (doubts.has_more ? '+' : '');
  unfold('doubts', rows.length > 0, rows.length ? 'writes whose outcome is not known' : 'none');
  showTile('doubts', rows.length ? 'bad' : 'good', number, rows.length ? 'resources held back' : 'every outcome is known');
}

const STATES = { up: 'up', down: 'down: its checks fail', unreachable: 'cannot be connected to' };
const SERVERS = [
  { title: 'Server', show: (cell, row) => text(cell, row.server) },
  { title: 'Upstream', class: 'quiet', show: (cell, row) => text(cell, row.upstream) },
  { title: 'State', show: showServerState },
  { title: 'Exchanges', class: 'n wide', show: (cell, row) => number(cell, row.exchanges, whole(row.exchanges)) },
  { title: 'Waiting', class: 'n wide', show: (cell, row) => number(cell, row.waiting, whole(row.waiting)) },
];
function showServerState(cell, row) {
  if (!cell.firstChild) cell.append(element('span'));
  text(cell.firstChild, STATES[row.state] + (row.state === 'up' && !row.checked ? ' (no checks)' : ''));
  cell.firstChild.className = 'pill ' + { up: 'good', down: 'bad', unreachable: 'warn' }[row.state];
}

let servers = [], storeIsFine = true;
export function showServers(part) {
  const rank = server => ['down', 'unreachable', 'up'].indexOf(server.state);
  servers = [...part.servers].sort((one, other) => rank(one) - rank(other));
  const rows = servers.map(server => ({ ...server, name: server.upstream + ' ' + server.server }));
  table(at('servers-table'), 'Servers', SERVERS, rows, [element('b', {}, 'No server'), 'The configuration names none, or none was needed yet.']);
  const down = servers.filter(server => server.state === 'down').length, away = servers.filter(server => server.state === 'unreachable').length;
  showTile('servers', down ? 'bad' : away ? 'warn' : 'good', whole(down),
    `of ${count(servers.length, 'server', 'servers')}` + (away ? `, ${whole(away)} cannot be connected to` : ''));
  foldServers();
}

function foldServers() {
  const well = servers.filter(server => server.state === 'up').length;
  unfold('servers', !storeIsFine || well < servers.length, `${well} of ${count(servers.length, 'server', 'servers')} up`);
}

/* What the store does, in a word, a colour and a sentence. */
function storeState(store) {
  if (store.problem === 'lost-writes') return ['lost writes', 'bad', 'It has lost acknowledged writes: see "the store fails" in the book.'];
  if (!store.available) return ['no answer', 'bad', 'Guarded writes get 503 until it answers.'];
  if (store.problem === 'full') return ['full', 'bad', 'It has no room for another record.'];
  if (!store.writable) return ['fails', 'bad', 'It answers reads, but a write does not last.'];
  return ['ready', 'good', 'It keeps every write.'];
}

export function showState(part) {
  const [words, kind, sentence] = storeState(part.store);
  storeIsFine = kind === 'good';
  showTile('store', kind, words, part.store.kind);
  at('store').replaceChildren(element('p', {}, element('b', {}, `Store (${part.store.kind}): `), sentence));
  foldServers();
}

const HOT = [
  { title: 'Resource', class: 'key', show: (cell, row) => text(button(cell, row, { class: 'link' }, row.open), row.key) },
  { title: 'Conflicts', class: 'n', show: (cell, row) => number(cell, row.conflicts, whole(row.conflicts)) },
  { title: 'Writes that waited', class: 'n', show: (cell, row) => number(cell, row.waits, whole(row.waits)) },
  { title: 'Longest wait', class: 'n wide', show: (cell, row) => number(cell, row.longest_wait_ms, row.waits ? time(row.longest_wait_ms) : '–') },
];
export function showHot(part, open) {
  const rows = part.hot.slice(0, 10).map(hot => ({ ...hot, name: hot.key, open: row => open(row.key) }));
  table(at('hot-table'), 'Hot resources', HOT, rows, [element('b', {}, 'No conflicts'), 'Resources appear here when writes are refused with 412, or wait for one another.']);
  unfold('hot', rows.length > 0, rows.length ? 'where writes met in the last five to ten minutes' : 'none in the last five minutes');
}
