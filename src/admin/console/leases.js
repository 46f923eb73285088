// The leases that are held, and how an operator breaks one.

import { tell } from './ask.js';
import { at, button, element, say, table, text, unfold } from './build.js';
import { showTile } from './tiles.js';
import { clock, whole } from './words.js';

let leases = { leases: [], has_more: false, seen: null }, open;

const COLUMNS = [
  { title: 'Resource', class: 'key', show: (cell, row) => text(button(cell, row, { class: 'link' }, () => open(row.key)), row.key) },
  { title: 'Holder', show: (cell, row) => { text(cell, row.holder ?? 'no label'); cell.classList.toggle('quiet', !row.holder); } },
  { title: 'Client', class: 'quiet wide', show: (cell, row) => text(cell, row.principal ?? '–') },
  { title: 'Age', class: 'n wide', show: (cell, row) => text(cell, clock(row.age)) },
  { title: 'Remaining', class: 'n', show: showRemaining },
  { title: 'Fence', class: 'n wide', show: (cell, row) => text(cell, String(row.fence)) },
  { title: 'Break', class: 'n', show: showBreak },
];

function showRemaining(cell, row) {
  if (!cell.firstChild) cell.append(element('span'), element('div', { class: 'left' }, element('i')));
  const words = row.remaining === null ? 'no end' : clock(row.remaining);
  text(cell.firstChild, row.state === 'breaking' ? 'breaking: ' + words : words);
  const share = row.remaining === null ? 1 : row.duration_ms ? row.remaining / row.duration_ms : 0;
  cell.lastChild.firstChild.style.width = Math.min(100, share * 100) + '%';
}

function showBreak(cell, row) {
  const shown = button(cell, row, { class: 'danger' }, confirm);
  text(shown, 'Break');
  shown.setAttribute('aria-label', 'Break the lease of ' + row.key);
}

export function showLeases(part, openResource) {
  if (part) leases = { ...part, seen: performance.now() };
  if (openResource) open = openResource;
  if (leases.seen === null) return;
  const passed = performance.now() - leases.seen;
  const rows = leases.leases.map(lease => ({
    ...lease, name: lease.key + ' ' + lease.fence, age: lease.age_ms + passed,
    remaining: lease.remaining_ms === null ? null : Math.max(0, lease.remaining_ms - passed),
  })).filter(row => row.remaining !== 0).sort((one, other) => one.key < other.key ? -1 : 1);
  const isFiltered = at('prefix').value !== '';
  table(at('leases-table'), 'Leases', COLUMNS, rows, isFiltered
    ? [element('b', {}, 'No lease under this prefix'), 'Clear the filter to see all of them.']
    : [element('b', {}, 'No lease is held'), 'On a route with ', element('code', {}, 'policy = "pessimistic"'), ' clients take one with ', element('code', {}, 'POST /.leases/…'), '.']);
  const number = whole(rows.length) + (leases.has_more ? '+' : '');
  unfold('leases', rows.length > 0 || isFiltered, leases.has_more ? `the first ${number}: filter by key, or use “ifmatch leases list”` : rows.length ? 'who may write, and for how long' : 'none');
  if (!isFiltered) showTile('leases', 'calm', number, 'who may write now');
}

function confirm(row) {
  text(at('confirm-key'), row.key);
  text(at('confirm-who'), `${row.holder ?? 'Its holder'} has held it for ${clock(row.age)}. Once it is broken, the next write with it is refused with 412, and another client can take the lease. The log records who broke it.`);
  at('period').value = '0s';
  const dialog = at('confirm');
  dialog.returnValue = '';
  dialog.onclose = () => { if (dialog.returnValue === 'break') breakLease(row, at('period').value); };
  dialog.showModal();
}

async function breakLease({ key, fence }, period) {
  try {
    const done = await tell('/leases/break', { key, fence, period }), remaining = done.leases[0]?.remaining_ms;
    say(done.was_broken ? `The lease of ${key} was already broken.` : remaining > 0 ? `The lease of ${key} ends in ${clock(remaining)}.` : `The lease of ${key} is broken.`);
  } catch (error) {
    say(`The lease of ${key} was not broken: ${error.message}`);
  }
}
