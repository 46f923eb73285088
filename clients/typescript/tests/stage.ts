/** The servers of the tests: a real ifmatch, which `tests/clients` of the project starts, and faults on the way to it. */
import assert from 'node:assert/strict';

function variable(name: string): string {
  const value = process.env[name];
  assert(value, `${name} names no ifmatch: run \`cargo test --test clients packages\``);
  return value;
}

let resources = 0;

/** The URL of a new resource that is changed by preconditions. */
export function document(): string {
  return `${variable('IFMATCH_URL')}/documents/${process.pid}-${resources++}`;
}

/** The URL of a new resource that is changed under leases. */
export async function drawing(): Promise<string> {
  const url = `${variable('IFMATCH_URL')}/drawings/${process.pid}-${resources++}`;
  const created = await fetch(url, { method: 'PUT', body: '{"lines":0}', headers: { 'If-None-Match': '*' } });
  assert.equal(created.status, 201);
  return url;
}

/** The same resource, at a server that keeps no streams. */
export function withoutStreams(url: string): string {
  return url.replace(variable('IFMATCH_URL'), variable('IFMATCH_WITHOUT_STREAMS_URL'));
}

/** A URL at which nothing listens: its host, which is this machine, has the number of this process. */
export function unreachable(): string {
  const { pid } = process;
  const host = [127, 128 | (pid >> 16), (pid >> 8) & 255, pid & 255].join('.');
  return `http://${host}:20000/documents/1`;
}

/** What becomes of a request. */
type Fate = 'arrives' | 'finds no server' | 'is lost' | 'is not answered';

/** A `fetch` that counts its requests, and does to some of them what networks do. */
export function network(fate: (request: string, number: number) => Fate = () => 'arrives') {
  const requests: string[] = [];
  const open = new Set<AbortController>();
  const send: typeof fetch = async (input, init) => {
    const method = init?.method ?? 'GET';
    const number = requests.filter(request => request === method).length;
    requests.push(method);
    const what = fate(method, number);
    if (what === 'finds no server') return await fetch(unreachable(), init);
    if (what === 'is lost') throw new TypeError('fetch failed', { cause: new Error('the cable is cut') });
    const cut = new AbortController();
    open.add(cut);
    init?.signal?.addEventListener('abort', () => cut.abort(init.signal?.reason));
    const answer = await fetch(input, { ...init, signal: cut.signal });
    if (what === 'is not answered') throw new TypeError('fetch failed', { cause: new Error('the cable is cut') });
    return answer;
  };
  const cut = () => {
    for (const connection of open) connection.abort(new Error('the cable is cut'));
    open.clear();
  };
  return { fetch: send, requests, cut };
}

/** Waits until a condition holds. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await condition())) {
    assert(performance.now() < end, `waited for ${what}`);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

/** The reason for which a signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<unknown> {
  await until('the signal to be aborted', () => signal.aborted);
  return signal.reason;
}

/** The error that a promise is rejected with, which is of this class. */
export async function rejected<E extends Error>(promise: Promise<unknown>, of: new (...parameters: never[]) => E): Promise<E> {
  const error: unknown = await promise.then(value => assert.fail(`resolved with ${JSON.stringify(value)}`), error => error);
  assert(error instanceof of, `${error} is no ${of.name}`);
  return error;
}
