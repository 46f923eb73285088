// Requests to the listener, and the stream of events that it keeps open.

/* A comment comes every 15 seconds. A stream that is silent for longer than two of them has broken off. */
const SILENCE_MAX_MS = 40_000;
const PAUSE_MS = 1000;

let token = sessionStorage.getItem('ifmatch-token');

export function useToken(text) {
  token = text;
  sessionStorage.setItem('ifmatch-token', token);
}

export class Refused extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

async function send(target, options = {}) {
  const headers = { ...options.headers };
  if (token) headers['Authorization'] = 'Bearer ' + token;
  const answer = await fetch(target, { ...options, headers, cache: 'no-store' });
  if (answer.ok) return answer;
  const problem = await answer.json();
  throw new Refused(answer.status, problem.code, problem.detail);
}

export const ask = async target => (await send(target)).json();

export async function tell(target, document) {
  const headers = { 'Content-Type': 'application/json', 'Ifmatch-Admin': '1' };
  return (await send(target, { method: 'POST', headers, body: JSON.stringify(document) })).json();
}

/* Reads one stream to its end. */
async function read(query, signal, onEvent) {
  const answer = await send('/watch?' + new URLSearchParams(query), { signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', watchdog;
  try {
    for (;;) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => reader.cancel(), SILENCE_MAX_MS);
      const { done, value } = await reader.read();
      if (done) return;
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      for (const event of events) {
        const parts = /^event: (.*)\ndata: (.*)$/.exec(event);
        if (parts) onEvent(parts[1], JSON.parse(parts[2]));
      }
    }
  } finally {
    clearTimeout(watchdog);
  }
}

/* Keeps a stream open until it is stopped. `onProblem` gets the reason why there is none; it may return a promise to wait for. */
export function follow(query, onEvent, onProblem) {
  const stop = new AbortController();
  (async () => {
    while (!stop.signal.aborted) {
      try {
        await read(query, stop.signal, onEvent);
      } catch (error) {
        if (stop.signal.aborted) return;
        await onProblem(error);
      }
      await new Promise(done => setTimeout(done, PAUSE_MS));
    }
  })();
  return () => stop.abort();
}
