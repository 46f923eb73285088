// The console: one stream of events fills the page.

import { Refused, follow, useToken } from './ask.js';
import { at, goTo, say, text } from './build.js';
import { showLeases } from './leases.js';
import { showAllRefusals, showRefusals } from './refusals.js';
import { forgetRates, sample, showHistory, showRoutes, tellLately } from './routes.js';
import { showTile } from './tiles.js';
import { forgetTimeline, showTimeline } from './timeline.js';
import { showDoubts, showHot, showServers, showState } from './trouble.js';
import { clock, time, whole } from './words.js';

const SAMPLE_MS = 2000;

/* ---- the state of the process ---- */
let started = null;

function pill(words, kind) {
  text(at('state'), words);
  at('state').className = 'pill ' + kind;
}

function showProcess(part) {
  if (part.draining) pill('ending', 'warn');
  else if (part.ready && part.start_grace.over) pill('ready', 'good');
  else if (part.ready) pill('writes wait ' + clock(part.start_grace.remaining_ms), 'warn');
  else pill('not ready', 'bad');
  text(at('listen'), part.listeners.join('  '));
  at('uptime').title = 'ifmatch ' + part.version;
  started = performance.now() - part.uptime_ms;
  showState(part);
}

tellLately((counts, minutes) => {
  const refused = counts[2] + counts[3], failed = counts[4];
  showTile('refusals', failed ? 'bad' : refused ? 'warn' : 'good', whole(refused),
    (failed ? `and ${whole(failed)} failed, ` : '') + `in ${minutes} minutes`);
});

/* ---- one resource ---- */
const resource = () => new URLSearchParams(location.hash.slice(1)).get('resource');
const open = key => { location.hash = new URLSearchParams({ resource: key }); };

function showResource() {
  const key = resource();
  at('resource').hidden = key === null;
  forgetTimeline();
  if (key !== null) {
    text(at('resource-key'), key);
    for (const place of ['facts', 'leases', 'events']) at('resource-' + place).replaceChildren();
    at('resource').scrollIntoView();
    at('resource-close').focus({ preventScroll: true });
  }
  restart();
}

/* ---- the stream ---- */
const PARTS = {
  state: showProcess,
  servers: showServers,
  routes: showRoutes,
  history: showHistory,
  hot: part => showHot(part, open),
  refusals: part => showRefusals(part, open),
  leases: part => showLeases(part, open),
  doubts: part => showDoubts(part, open),
  timeline: showTimeline,
};

let isPaused = false, stop = () => {};

function restart() {
  stop();
  if (isPaused || document.visibilityState !== 'visible') return;
  const query = { prefix: at('prefix').value };
  if (resource() !== null) query.key = resource();
  stop = follow(query, (name, part) => PARTS[name]?.(part), failed);
}

async function failed(error) {
  if (error instanceof Refused && error.status === 401) return login();
  if (error instanceof Refused && error.status === 400) {
    say('This is not the key of a resource: ' + error.message);
    location.hash = '';
    return;
  }
  pill(error instanceof Refused ? error.code : 'no connection', 'bad');
}

/* Waits until a token was given. */
function login() {
  const dialog = at('login');
  if (dialog.open) return;
  at('token').value = '';
  dialog.showModal();
  return new Promise(done => {
    dialog.onclose = () => {
      useToken(at('token').value.trim());
      done();
    };
  });
}

/* ---- what a person does ---- */
at('pause').onclick = () => {
  isPaused = !isPaused;
  forgetRates();
  at('pause').setAttribute('aria-pressed', String(isPaused));
  text(at('pause'), isPaused ? 'Resume' : 'Pause');
  restart();
};
at('filter').onsubmit = event => event.preventDefault();
at('prefix').onchange = restart;
at('refusals-more').onclick = showAllRefusals;
at('resource-form').onsubmit = event => {
  event.preventDefault();
  const key = at('key').value.trim();
  if (key) open(key);
};
at('resource-close').onclick = () => {
  location.hash = '';
  at('key').focus();
};
for (const tile of document.querySelectorAll('.tile')) {
  tile.onclick = event => {
    event.preventDefault();
    goTo(tile.getAttribute('href').slice(1));
  };
}
addEventListener('hashchange', showResource);
document.addEventListener('visibilitychange', restart);

/* Times go on between two events. */
setInterval(() => {
  if (isPaused) return;
  showLeases();
  showDoubts(null, open);
  showTimeline();
  if (started !== null) text(at('uptime'), 'up ' + time(performance.now() - started));
}, 1000);
setInterval(() => { if (!isPaused) sample(); }, SAMPLE_MS);
showResource();
