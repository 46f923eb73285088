import assert from 'node:assert/strict';
import test from 'node:test';
import { Lease, Refused, Unreachable, update, watch, type WatchEvent } from '../src/index.js';
import { document, drawing, network, rejected, unreachable } from './stage.js';

type Of<K extends WatchEvent['type']> = Extract<WatchEvent, { type: K }>;

/** The next event of this kind. */
async function next<K extends WatchEvent['type']>(events: AsyncGenerator<WatchEvent>, type: K): Promise<Of<K>> {
  for (;;) {
    const { value, done } = await events.next();
    assert(!done, `the watch ended before ${type}`);
    if (value.type === type) return value as Of<K>;
  }
}

test('a watcher is told the state, each change and each step of the lease', async () => {
  const url = await drawing();
  const stop = new AbortController();
  const events = watch(url, { signal: stop.signal });
  const { path, etag, lease: before } = await next(events, 'state');
  assert.equal(path, new URL(url).pathname);
  assert.equal(etag, (await fetch(url)).headers.get('ETag'));
  assert.equal(before?.state, 'available');
  const lease = await Lease.acquire(url, { holder: 'Ann' });
  const step = await next(events, 'lease');
  assert.deepEqual([step.change, step.holder], ['acquired', 'Ann']);
  const written = await update<{ lines: number }>(url, drawing => void (drawing.lines += 1), { lease });
  assert.equal((await next(events, 'changed')).etag, written.etag);
  await lease.release();
  stop.abort();
  assert.equal((await events.next()).done, true);
});

test('a watcher comes back after a break, and says that there was one', async () => {
  const url = document();
  await update(url, () => 1, { initial: 0 });
  const way = network();
  const events = watch(url, { fetch: way.fetch });
  await next(events, 'state');
  way.cut();
  const { error } = await next(events, 'interrupted');
  assert(error instanceof Unreachable);
  assert.match(error.message, /the cable is cut/);
  await next(events, 'state');
  await events.return();
});

test('an unreachable proxy interrupts a watch', async () => {
  const events = watch(unreachable());
  assert.match((await next(events, 'interrupted')).error.message, /ECONNREFUSED/);
  await events.return();
});

test('several resources are watched by one request', async () => {
  const urls = [document(), document()];
  for (const url of urls) await update(url, () => 1, { initial: 0 });
  const way = network();
  const events = watch(urls, { fetch: way.fetch });
  const paths = [(await next(events, 'state')).path, (await next(events, 'state')).path];
  assert.deepEqual(paths.sort(), urls.map(url => new URL(url).pathname).sort());
  assert.deepEqual(way.requests, ['GET']);
  await events.return();
});

test('a refusal of the backend ends the watch', async () => {
  const error = await rejected(watch(document()).next(), Refused);
  assert.equal(error.status, 404);
});
