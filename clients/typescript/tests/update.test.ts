import assert from 'node:assert/strict';
import test from 'node:test';
import {
  GaveUp, Lease, LeaseEnded, LeaseLost, OutcomeUnknown, PreconditionFailed, Refused, Unreachable, text, update,
} from '../src/index.js';
import { document, drawing, network, rejected, unreachable } from './stage.js';

interface Counter {
  count: number;
  changes: string[];
}

const initial: Counter = { count: 0, changes: [] };

function add(mark: string) {
  const change = (counter: Counter) => {
    counter.count += 1;
    counter.changes.push(mark);
  };
  return { change, isApplied: (counter: Counter) => counter.changes.includes(mark) };
}

async function read(url: string): Promise<Counter> {
  return await (await fetch(url)).json() as Counter;
}

test('no update is lost among writers of one document', async () => {
  const url = document();
  const marks = Array.from({ length: 12 }, (_, number) => `mark ${number}`);
  await Promise.all(marks.map(mark => update(url, add(mark).change, { initial })));
  const counter = await read(url);
  assert.equal(counter.count, marks.length);
  assert.deepEqual(counter.changes.sort(), marks.sort());
  assert.deepEqual(initial, { count: 0, changes: [] });
});

test('the result is the document and its tag', async () => {
  const url = document();
  const written = await update(url, () => ({ count: 7 }), { initial: { count: 0 } });
  assert.deepEqual(written.document, { count: 7 });
  assert.equal(written.etag, (await fetch(url)).headers.get('ETag'));
});

test('a text is changed as a text', async () => {
  const url = document();
  await update(url, () => 'one', { initial: '', format: text });
  assert.equal((await update(url, before => `${before}, two`, { format: text })).document, 'one, two');
  assert.equal(await (await fetch(url)).text(), 'one, two');
});

test('a missing resource is an error without an initial document', async () => {
  const error = await rejected(update(document(), () => 1), Refused);
  assert.equal(error.status, 404);
});

test('a path without a route is not an absent resource', async () => {
  const url = new URL('/elsewhere/1', document());
  const way = network();
  const error = await rejected(update(url, add('a').change, { initial, fetch: way.fetch }), Refused);
  assert.equal(error.code, 'no-route');
  assert.deepEqual(way.requests, ['GET']);
});

test('the state in a 412 saves a read', async () => {
  const url = document();
  await update(url, add('first').change, { initial });
  const way = network();
  let calls = 0;
  const change = async (counter: Counter) => {
    if (calls++ === 0) await update(url, add('another').change);
    add('mine').change(counter);
  };
  await update(url, change, { fetch: way.fetch });
  assert.deepEqual(way.requests, ['GET', 'PUT', 'PUT']);
  assert.deepEqual((await read(url)).changes, ['first', 'another', 'mine']);
});

test('a change that is there already is not written', async () => {
  const url = document();
  const { etag } = await update(url, add('mine').change, { initial });
  const way = network();
  assert.equal((await update(url, add('mine').change, { isApplied: add('mine').isApplied, fetch: way.fetch })).etag, etag);
  assert.deepEqual(way.requests, ['GET']);
});

test('a write that was never sent leaves nothing unknown', async () => {
  const url = document();
  await update(url, add('first').change, { initial });
  const way = network((method, number) => (method === 'PUT' && number === 0 ? 'finds no server' : 'arrives'));
  let calls = 0;
  const change = async (counter: Counter) => {
    if (calls++ === 0) await update(url, add('another').change);
    add('mine').change(counter);
  };
  await update(url, change, { fetch: way.fetch });
  assert.deepEqual((await read(url)).changes, ['first', 'another', 'mine']);
  const closed = network(method => (method === 'PUT' ? 'finds no server' : 'arrives'));
  const error = await rejected(update(url, add('last').change, { fetch: closed.fetch, attempts: 2 }), GaveUp);
  assert(error.last instanceof Unreachable && !error.last.wasSent);
});

test('a write that is lost on the way is made once', async () => {
  const url = document();
  const way = network((method, number) => (method === 'PUT' && number === 0 ? 'is lost' : 'arrives'));
  await update(url, add('mine').change, { initial, fetch: way.fetch });
  assert.equal((await read(url)).count, 1);
});

for (const [how, options] of [['a mark', { isApplied: add('mine').isApplied }], ['a key', { idempotencyKey: 'a'.repeat(20) }]] as const) {
  test(`a write whose answer is lost is made once with ${how}`, async () => {
    const url = document();
    await update(url, add('first').change, { initial });
    const way = network((method, number) => (method === 'PUT' && number < 2 ? 'is not answered' : 'arrives'));
    await update(url, add('mine').change, { ...options, fetch: way.fetch });
    assert.deepEqual(await read(url), { count: 2, changes: ['first', 'mine'] });
  });
}

test('a write with a key after another one has a key of its own', async () => {
  const url = document();
  await update(url, add('first').change, { initial });
  let calls = 0;
  const change = async (counter: Counter) => {
    if (calls++ === 0) await update(url, add('another').change);
    add('mine').change(counter);
  };
  const keys: (string | null)[] = [];
  const send: typeof fetch = (input, init) => {
    keys.push(new Headers(init?.headers).get('Idempotency-Key'));
    return fetch(input, init);
  };
  await update(url, change, { idempotencyKey: 'b'.repeat(20), fetch: send });
  assert.deepEqual(keys, [null, 'b'.repeat(20), `${'b'.repeat(20)}-2`]);
  assert.deepEqual((await read(url)).changes, ['first', 'another', 'mine']);
});

test('a write whose answer is lost is reported without a mark and a key', async () => {
  const url = document();
  await update(url, add('first').change, { initial });
  const way = network((method, number) => (method === 'PUT' && number === 0 ? 'is not answered' : 'arrives'));
  const error = await rejected(update(url, add('mine').change, { fetch: way.fetch }), OutcomeUnknown);
  assert.match(error.message, /not known whether the change was made.*the cable is cut/);
  assert.equal((await read(url)).count, 2);
});

test('writes that are never answered end as unknown', async () => {
  const url = document();
  await update(url, add('first').change, { initial });
  const way = network(method => (method === 'PUT' ? 'is lost' : 'arrives'));
  const error = await rejected(update(url, add('mine').change, { fetch: way.fetch, attempts: 3 }), OutcomeUnknown);
  assert(error.last instanceof Unreachable);
  assert.deepEqual(way.requests, ['GET', 'PUT', 'PUT', 'PUT']);
});

test('an unreachable proxy is reported as such', async () => {
  const url = unreachable();
  const error = await rejected(update(url, add('mine').change, { initial, attempts: 2 }), GaveUp);
  assert(error.last instanceof Unreachable);
  assert.match(error.message, /after 2 attempts.*no answer.*ECONNREFUSED/);
});

test('an update that always comes too late gives up, and says why', async () => {
  const url = document();
  await update(url, add('first').change, { initial });
  const change = async (counter: Counter) => {
    await update(url, add('another').change);
    add('mine').change(counter);
  };
  const error = await rejected(update(url, change, { attempts: 2 }), GaveUp);
  assert(error.last instanceof PreconditionFailed);
  assert.match(error.message, /412 precondition-failed/);
});

test('a signal ends the attempts', async () => {
  const stop = new AbortController();
  const reason = new Error('the page is closed');
  const way = network(() => {
    stop.abort(reason);
    return 'is lost';
  });
  const error = await rejected(update(document(), add('a').change, { initial, fetch: way.fetch, signal: stop.signal }), Error);
  assert.equal(error, reason);
});

test('a change is written under a lease, and not without one', async () => {
  const url = await drawing();
  const lease = await Lease.acquire(url, { holder: 'Ann' });
  const draw = (drawing: { lines: number }) => void (drawing.lines += 1);
  const error = await rejected(update(url, draw, { attempts: 1 }), GaveUp);
  assert.match(error.message, /lease-id-missing/);
  assert.deepEqual((await update(url, draw, { lease })).document, { lines: 1 });
  await lease.release();
  await rejected(update(url, draw, { lease }), LeaseLost);
});

test('a refusal of the id ends the lease', async () => {
  const url = await drawing();
  const told: Refused[] = [];
  const lost = new LeaseLost(url, 'lease-not-present');
  const lose = (refusal: Refused) => {
    told.push(refusal);
    return lost;
  };
  const ended = { id: '11111111-1111-4111-8111-111111111111', signal: new AbortController().signal, lose };
  const draw = (drawing: { lines: number }) => void (drawing.lines += 1);
  assert.equal(await rejected(update(url, draw, { lease: ended as unknown as Lease }), LeaseLost), lost);
  assert(told[0] instanceof LeaseEnded);
});
