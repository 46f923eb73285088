// The minutes of the last hour as bars, with axes.

import { drawing, element } from './build.js';
import { whole } from './words.js';

export const MEANINGS = ['passed', 'local', 'conflicts', 'refused', 'failures'];
export const MEANING_WORDS = { passed: 'passed', local: 'answered here', conflicts: 'conflicts', refused: 'refused', failures: 'failed' };
export const MINUTES = 60;

export const sum = counts => counts.reduce((total, value) => total + value, 0);

export const added = minutes => MEANINGS.map((_, meaning) => sum(minutes.map(minute => minute[meaning])));

/* Counts in words: "12 passed, 3 conflicts". */
export function inWords(counts) {
  const words = MEANINGS.map((meaning, place) => counts[place] ? whole(counts[place]) + ' ' + MEANING_WORDS[meaning] : null);
  return words.filter(Boolean).join(', ') || 'no requests';
}

/* The bars alone: a column of the drawing for each minute, the newest at the right. */
export function bars(minutes, label) {
  const most = Math.max(1, ...minutes.map(sum));
  const columns = minutes.flatMap((minute, index) => {
    let below = 0;
    return MEANINGS.flatMap((meaning, place) => {
      if (!minute[place]) return [];
      const height = 100 * minute[place] / most;
      below += height;
      const x = MINUTES - minutes.length + index;
      return [drawing('rect', { class: meaning, x: x + 0.1, y: 100 - below, width: 0.8, height })];
    });
  });
  return drawing('svg', { class: 'bars', viewBox: `0 0 ${MINUTES} 100`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label }, ...columns);
}

/* The bars with an axis of requests a minute, and one of time. */
export function chart(minutes, name) {
  const most = Math.max(0, ...minutes.map(sum));
  const label = `${name} in the last hour: ${inWords(added(minutes))}; at most ${whole(most)} in one minute`;
  return element('div', { class: 'chart' },
    element('div', { class: 'high', 'aria-hidden': 'true' }, element('span', {}, whole(most)), element('span', {}, 'a minute'), element('span', {}, '0')),
    bars(minutes, label),
    element('div', { class: 'hours', 'aria-hidden': 'true' }, ...['1 h ago', '45 min', '30 min', '15 min', 'now'].map(moment => element('span', {}, moment))));
}
