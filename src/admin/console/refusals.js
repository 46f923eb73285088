// The last refusals, in columns and in groups.

import { at, button, detail, element, facts, table, text, unfold } from './build.js';
import { client, clock, moment, whole } from './words.js';

const GROUPS_MAX = 8, ROWS_FIRST = 8;

const COLUMNS = [
  { title: 'Time', class: 'n first', show: showTime },
  { title: 'Code', show: showCode },
  { title: 'Method', class: 'wide', show: (cell, row) => text(cell, row.method) },
  { title: 'Resource', class: 'key', show: showResource },
  { title: 'Client', class: 'wide', show: (cell, row) => text(cell, client(row)) },
];

function showTime(cell, row) {
  if (!cell.firstChild) cell.append(element('time', { dateTime: row.at, title: row.at }, moment(row.at)));
}

/* A refusal is a fault of somebody, a conflict of two clients, or a rule that was not kept. */
export const kindOf = refusal => refusal.status >= 500 ? 'failures' : refusal.status === 412 || refusal.status === 409 ? 'conflicts' : 'refused';

export const reasonOf = refusal => refusal.code + (refusal.reason ? ` (${refusal.reason})` : '');

function showCode(cell, row) {
  const shown = button(cell, row, { class: 'link code' }, showStory);
  if (!shown.firstChild) shown.append(element('i', { class: kindOf(row) }), `${row.status} ${reasonOf(row)}`);
}

function showResource(cell, row) {
  if (!row.key) return text(cell, row.path);
  text(button(cell, row, { class: 'link' }, () => row.open(row.key)), row.key);
}

function showStory(row) {
  detail(`${row.status} ${row.code}`, facts(story(row)));
}

/* The facts of a refusal, in the order of "ifmatch why". */
function story(refusal) {
  const change = refusal.last_change, lease = refusal.lease;
  const ends = lease && (lease.remaining_ms === null ? 'no end' : clock(lease.remaining_ms) + ' left then');
  return [
    ['Asked', refusal.method + ' ' + refusal.path],
    ['Refused', refusal.status + ' ' + reasonOf(refusal) + (refusal.in_doubt ? ', in doubt' : '')],
    ['Time', refusal.at],
    ['Client', [refusal.principal, refusal.client].filter(Boolean).join(', ')],
    ['Route', refusal.route && refusal.route + (refusal.policy ? ` (${refusal.policy})` : '')],
    ['Resource', refusal.key],
    ['Tag sent', refusal.sent_tag],
    ['Current tag', refusal.current_tag ?? (refusal.untagged && 'none: ' + refusal.untagged)],
    ['Last change', change && clock(change.age_ms) + ' before' + (change.trace_id ? ', trace ' + change.trace_id : '')],
    ['Probe', refusal.probe_status && 'the upstream answered ' + refusal.probe_status],
    ['Lease', lease && (lease.holder ?? 'no label') + ', ' + ends],
    ['Retry after', refusal.retry_after_ms && clock(refusal.retry_after_ms)],
    ['Told', refusal.detail],
    ['More', 'ifmatch why ' + refusal.id],
  ];
}

let part = { refusals: [], groups: [] }, chosen = null, isWhole = false, open;

export function showRefusals(latest, openResource) {
  part = latest;
  open = openResource;
  if (!part.groups.some(group => nameOf(group) === chosen)) chosen = null;
  show();
}

const nameOf = group => group.code + ' ' + (group.route ?? '');

function show() {
  const all = part.groups.reduce((sum, group) => sum + group.count, 0);
  const wanted = part.refusals.filter(refusal => chosen === null || nameOf(refusal) === chosen);
  const rows = wanted.slice(0, isWhole ? wanted.length : ROWS_FIRST).map(refusal => ({ ...refusal, name: refusal.id, open }));
  showGroups();
  table(at('refusals-table'), 'Last refusals', COLUMNS, rows, chosen === null
    ? [element('b', {}, 'No refusal'), 'Each refused request appears here, with its reason.']
    : [element('b', {}, 'None of these is among the latest'), 'Use ', element('code', {}, 'ifmatch why'), ' for all that this process keeps.']);
  at('refusals-more').hidden = isWhole || wanted.length <= ROWS_FIRST;
  text(at('refusals-more'), `Show all ${whole(wanted.length)}`);
  unfold('refusals', all > 0, all ? `the latest of ${whole(all)} that this process keeps` : 'none');
}

export function showAllRefusals() {
  isWhole = true;
  show();
}

/* Each group is a switch that leaves only its refusals in the table. */
function showGroups() {
  const old = new Map([...at('groups').children].map(chip => [chip.dataset.group, chip]));
  const chips = part.groups.slice(0, GROUPS_MAX).map(group => {
    const name = nameOf(group), chip = old.get(name) ?? element('button', { type: 'button', class: 'chip' }, element('b'), element('span'));
    chip.dataset.group = name;
    text(chip.firstChild, whole(group.count));
    text(chip.lastChild, ` ${group.code}` + (group.route ? ` · ${group.route}` : ''));
    chip.setAttribute('aria-pressed', String(name === chosen));
    chip.onclick = () => { chosen = name === chosen ? null : name; show(); };
    return chip;
  });
  const isSame = chips.length === at('groups').children.length && chips.every((chip, place) => at('groups').children[place] === chip);
  if (!isSame) at('groups').replaceChildren(...chips);
}
