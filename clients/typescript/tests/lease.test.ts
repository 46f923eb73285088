import assert from 'node:assert/strict';
import test from 'node:test';
import { GaveUp, Lease, LeaseHeld, LeaseLost, Refused, Unreachable, type IfmatchError } from '../src/index.js';
import { aborted, document, drawing, network, rejected, unreachable, until, withoutStreams } from './stage.js';

const leaseUrl = (url: string) => url.replace(/(\/\/[^/]+)/, '$1/.leases');

async function state(url: string): Promise<string> {
  return (await (await fetch(leaseUrl(url))).json() as { state: string }).state;
}

async function put(url: string, lease: Lease): Promise<number> {
  return (await fetch(url, { method: 'PUT', body: '{}', headers: lease.headers })).status;
}

async function breakLease(url: string): Promise<void> {
  const answer = await fetch(leaseUrl(url), { method: 'DELETE', headers: { 'Lease-Break-Period': '0' } });
  assert.equal(answer.status, 202);
}

/** The error of a wait that is long enough for this machine to hear something. */
async function gaveUp(wait: (maxWaitMs: number) => Promise<Lease>, heard: RegExp): Promise<GaveUp> {
  for (let maxWaitMs = 300; ; maxWaitMs *= 2) {
    const error = await rejected(wait(maxWaitMs), GaveUp);
    if (heard.test(error.message) || maxWaitMs > 30_000) return error;
  }
}

for (const status of [200, 404, 405]) {
  test(`an answer of the backend with ${status} is no lease`, async () => {
    const backend: typeof fetch = async () => new Response('<h1>The shop</h1>', { status });
    const error = await rejected(Lease.acquire('http://shop.example/notes/1', { fetch: backend }), Refused);
    assert.equal(error.status, status);
    assert.match(error.message, /no lease here.*pessimistic/);
  });
}

test('a lease goes from one holder to the next', async () => {
  const url = await drawing();
  const first = await Lease.acquire(url, { holder: 'Jörg 李' });
  assert.equal(first.etag, (await fetch(url)).headers.get('ETag'));
  assert.equal(await put(url, first), 204);
  const reasons: IfmatchError[] = [];
  const turn = Lease.acquire(url, { holder: 'Ben', onWaiting: reason => reasons.push(reason) });
  await until('Ben to wait', () => reasons.length > 0);
  assert(reasons[0] instanceof LeaseHeld);
  assert.equal(reasons[0].holder, 'Jörg 李');
  await first.release();
  const second = await turn;
  assert(second.fence > first.fence);
  assert.equal(await put(url, first), 412);
  assert.equal(await put(url, second), 204);
  assert(first.signal.reason instanceof LeaseLost);
  assert.equal(first.signal.reason.reason, 'released');
  await second.release();
  assert.equal(await state(url), 'available');
});

test('the holder is told at once that its lease is broken', async () => {
  const url = await drawing();
  const lease = await Lease.acquire(url);
  await breakLease(url);
  const lost = await aborted(lease.signal);
  assert(lost instanceof LeaseLost);
  assert.equal(lost.reason, 'broken');
});

test('a holder comes back after a break of its connection', async () => {
  const url = await drawing();
  const way = network();
  const lease = await Lease.acquire(url, { fetch: way.fetch });
  way.cut();
  await until('it to ask again', () => way.requests.length > 1);
  assert.equal(await put(url, lease), 204);
  assert.equal(lease.signal.aborted, false);
  await lease.release();
});

test('a holder that comes back after another one has lost its lease', async () => {
  const url = await drawing();
  const way = network();
  let comeBack = () => {};
  const mayComeBack = new Promise<void>(resolve => (comeBack = resolve));
  const send: typeof fetch = async (input, init) => {
    if (way.requests.length > 0) await mayComeBack;
    return way.fetch(input, init);
  };
  const lease = await Lease.acquire(url, { fetch: send });
  way.cut();
  await breakLease(url);
  const other = await Lease.acquire(url);
  await put(url, other);
  await other.release();
  comeBack();
  const lost = await aborted(lease.signal);
  assert(lost instanceof LeaseLost);
  assert.equal(lost.reason, 'expired');
  await until('the lease that it got anew to be free', async () => await state(url) === 'available');
});

test('a holder whose connection stays broken loses its lease with its term, and says why', async () => {
  const url = await drawing();
  const way = network((_, number) => (number === 0 ? 'arrives' : 'is lost'));
  const lease = await Lease.acquire(url, { fetch: way.fetch, seconds: 1 });
  way.cut();
  const lost = await aborted(lease.signal);
  assert(lost instanceof LeaseLost);
  assert.equal(lost.reason, 'unknown');
  assert.match(lost.message, /the last error was: POST .*no answer.*the cable is cut/);
});

test('a client that waits for too long learns the name of the holder', async () => {
  const url = await drawing();
  const lease = await Lease.acquire(url, { holder: 'Ann' });
  const error = await gaveUp(maxWaitMs => Lease.acquire(url, { maxWaitMs }), /held/);
  assert(error.last instanceof LeaseHeld);
  assert.match(error.message, /after [0-9.]+ s.*lease-held \(held by Ann\)/);
  await lease.release();
});

test('an unreachable proxy does not look like a holder', async () => {
  const url = unreachable();
  const reasons: IfmatchError[] = [];
  const onWaiting = (reason: IfmatchError) => reasons.push(reason);
  const error = await gaveUp(maxWaitMs => Lease.acquire(url, { maxWaitMs, onWaiting }), /ECONNREFUSED/);
  assert(error.last instanceof Unreachable);
  assert.match(error.message, /no answer.*ECONNREFUSED/);
  assert.doesNotMatch(error.message, /held/);
  assert(reasons.every(reason => reason instanceof Unreachable));
});

test('a final refusal is not tried again', async () => {
  const way = network();
  const error = await rejected(Lease.acquire(document(), { fetch: way.fetch }), Refused);
  assert.equal(error.code, 'no-route');
  assert.deepEqual(way.requests, ['POST']);
});

test('a signal ends the wait, and later the lease', async () => {
  const url = await drawing();
  const [holds, waits] = [new AbortController(), new AbortController()];
  const lease = await Lease.acquire(url, { signal: holds.signal });
  const reason = new Error('the page is closed');
  const turn = Lease.acquire(url, { signal: waits.signal, onWaiting: () => waits.abort(reason) });
  assert.equal(await rejected(turn, Error), reason);
  holds.abort();
  assert(lease.signal.aborted);
  await until('the lease to be free', async () => await state(url) === 'available');
});

test('without streams a lease is renewed', async () => {
  const url = withoutStreams(await drawing());
  const way = network();
  const lease = await Lease.acquire(url, { fetch: way.fetch, seconds: 9 });
  await until('two renewals', () => way.requests.filter(method => method === 'PUT').length >= 2);
  assert.equal(await put(url, lease), 204);
  await breakLease(url);
  const lost = await aborted(lease.signal);
  assert(lost instanceof LeaseLost);
  assert.match(lost.message, /409 lease-/);
});

test('a gateway that lets no stream through costs no lease', async () => {
  const url = await drawing();
  const strip: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.delete('Accept');
    return fetch(input, { ...init, headers });
  };
  const lease = await Lease.acquire(url, { fetch: strip });
  assert.equal(await put(url, lease), 204);
  await lease.release();
});

test('without random numbers ifmatch chooses the id', async () => {
  const url = await drawing();
  const property = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true });
  try {
    const lease = await Lease.acquire(url);
    assert.equal(await put(url, lease), 204);
    await lease.release();
    assert.equal(await state(url), 'available');
  } finally {
    if (property) Object.defineProperty(globalThis, 'crypto', property);
  }
});
