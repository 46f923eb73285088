import assert from 'node:assert/strict';
import test from 'node:test';
import { Conflict, Unreachable, guardedFetch } from '../src/index.js';
import { document, rejected, unreachable } from './stage.js';

test('a write has the tag of the last read, and a conflict all versions', async () => {
  const url = document();
  const [ann, ben] = [guardedFetch(), guardedFetch()];
  await rejected(ann(url, { method: 'PUT', body: 'unread' }), TypeError);
  assert.equal((await ann(url, { method: 'PUT', body: 'one', create: true })).status, 201);
  assert.equal(await (await ben(url)).text(), 'one');
  assert.equal((await ann(url, { method: 'PUT', body: 'by Ann' })).status, 204);
  const conflict = await rejected(ben(url, { method: 'PUT', body: 'by Ben' }), Conflict);
  assert.equal(conflict.code, 'precondition-failed');
  const { read, current, written } = conflict;
  const texts = await Promise.all([read?.text(), current?.clone().text(), written.text()]);
  assert.deepEqual(texts, ['one', 'by Ann', 'by Ben']);
  assert.equal((await ben(url, { method: 'PUT', body: 'by both', base: current ?? undefined })).status, 204);
});

test('a refusal that has the current state spares the read after it', async () => {
  const url = document();
  const requests: string[] = [];
  const ann = guardedFetch();
  const ben = guardedFetch({ fetch: (request, init) => (requests.push((request as Request).method), fetch(request, init)) });
  await ann(url, { method: 'PUT', body: 'one', create: true });
  await ben(url);
  await ann(url, { method: 'PUT', body: 'by Ann' });
  const { current, code } = await rejected(ben(url, { method: 'PUT', body: 'by Ben' }), Conflict);
  assert.deepEqual(requests, ['GET', 'PUT']);
  assert.deepEqual([code, current?.status, await current?.text()], ['precondition-failed', 200, 'by Ann']);
  // A preference of the page is left alone, and the client reads.
  const headers = { Prefer: 'return=minimal' };
  const minimal = await rejected(ben(url, { method: 'PUT', body: 'by Ben', headers }), Conflict);
  assert.deepEqual(requests, ['GET', 'PUT', 'PUT', 'GET']);
  assert.equal(await minimal.current?.text(), 'by Ann');
});

test('a lost connection is an error of its own', async () => {
  const error = await rejected(guardedFetch()(unreachable()), Unreachable);
  assert.match(error.message, /GET http.*ECONNREFUSED/);
});
