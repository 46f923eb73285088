/**
 * For pages that edit resources behind ifmatch (docs/browser-client.md): a `fetch` that remembers the version that the
 * page has read, and sends it with each write, and leases that a page holds while it is open.
 *
 * @typedef {RequestInit & {base?: Response, create?: boolean}} GuardedInit
 *   `base`: the response that this write is based on, if it is not the last one that was read from the URL.
 *   `create`: the write may only create the resource (`If-None-Match: *`).
 */

const WRITES = ['PUT', 'PATCH', 'DELETE'];

/** Fields by which a write says itself why it may happen. */
const PROOFS = ['If-Match', 'If-None-Match', 'Lease-Id'];

/** A write that was refused with 409 or 412. All bodies in it are unread. */
export class Conflict extends Error {
  /**
   * @param {Response} refusal  the answer to the write
   * @param {string | undefined} code  the code of the refusal, for example `precondition-failed`
   * @param {{read: Response | null, current: Response | null, written: Request}} versions
   *   `read`: the version that the write was based on. `current`: the present answer to a GET, which is a 404 if the
   *   resource is gone, or null if there was none. `written`: the write.
   */
  constructor(refusal, code, { read, current, written }) {
    super(`${written.method} ${written.url}: ${refusal.status} ${code ?? ''}`);
    Object.assign(this, { name: 'Conflict', refusal, code, read, current, written });
  }
}

/**
 * Makes a `fetch` with a memory of its own. An editor that keeps a version open has one for itself.
 *
 * @param {{maxWaitMs?: number, maxKept?: number}} [limits]
 *   `maxWaitMs`: how long a write waits in all for other writes (409 `write-in-flight`).
 *   `maxKept`: the number of URLs whose last version is kept.
 * @returns {(resource: RequestInfo | URL, init?: GuardedInit) => Promise<Response>}
 */
export function guardedFetch({ maxWaitMs = 60_000, maxKept = 100 } = {}) {
  /** @typedef {{tag: string | null, copy: Response | null}} Version  `copy` is never read, so it can be cloned. */
  /** The last version of each URL, the oldest first. @type {Map<string, Version>} */
  const kept = new Map();
  /** Copies of the responses that were handed out. @type {WeakMap<Response, Response>} */
  const copies = new WeakMap();

  function keep(url, tag, copy) {
    kept.delete(url);
    if (tag !== null) kept.set(url, { tag, copy });
    if (kept.size > maxKept) kept.delete(kept.keys().next().value);
  }

  async function read(request) {
    // A tag from a cache is one of yesterday.
    const response = await fetch(request, { cache: 'no-store' });
    copies.set(response, response.clone());
    return response;
  }

  async function readAndKeep(request) {
    const response = await read(request);
    const { status, headers } = response;
    if (status === 200) keep(request.url, headers.get('ETag'), copies.get(response));
    if (status === 404 || status === 410) keep(request.url, null, null);
    return response;
  }

  async function conflict(request, base, refusal, code) {
    const { url, credentials, mode, signal } = request, headers = new Headers(request.headers);
    for (const name of ['If-Match', 'If-None-Match', 'Content-Type', 'Idempotency-Key']) headers.delete(name);
    const current = await read(new Request(url, { credentials, mode, signal, headers })).catch(() => null);
    return new Conflict(refusal, code, { read: base?.copy?.clone() ?? null, current, written: request });
  }

  async function write(request, base) {
    // Each attempt is the same request: a version that was read meanwhile takes no part in it.
    for (let leftMs = maxWaitMs; ;) {
      const response = await fetch(request.clone());
      if (response.ok) {
        const tag = request.method === 'DELETE' ? null : response.headers.get('ETag');
        const isWhole = request.method === 'PUT' && tag !== null;
        const headers = { 'ETag': tag, 'Content-Type': request.headers.get('Content-Type') ?? '' };
        keep(request.url, tag, isWhole ? new Response(await request.clone().blob(), { headers }) : null);
      }
      if (response.status !== 409 && response.status !== 412) return response;
      const code = (await response.clone().json().catch(() => null))?.code;
      const waitMs = 1000 * (Number(response.headers.get('Retry-After')) || 1);
      // The code says that nothing was written; so the same may be sent again.
      if (code !== 'write-in-flight' || waitMs > leftMs) throw await conflict(request, base, response, code);
      leftMs -= waitMs;
      await new Promise(done => setTimeout(done, waitMs));
    }
  }

  return async function guarded(resource, { base: given, create = false, ...init } = {}) {
    const request = new Request(resource, init), { headers, method, url } = request;
    if (!WRITES.includes(method)) return method === 'GET' ? readAndKeep(request) : fetch(request);
    const base = given ? { tag: given.headers.get('ETag'), copy: copies.get(given) ?? null } : kept.get(url);
    if (create) headers.set('If-None-Match', '*');
    else if (base?.tag && !headers.has('If-Match') && !headers.has('If-None-Match')) headers.set('If-Match', base.tag);
    const isProven = PROOFS.some(name => headers.has(name));
    if (!isProven) throw new TypeError(`${method} ${url}: no ETag of it is known; read it`);
    return write(request, create ? null : base);
  };
}

/** Why a page holds its lease no more, or gets none. `code` is the reason of the loss, or the code of the refusal. */
export class LeaseLost extends Error {
  constructor(code, message = `the lease is lost: ${code}`) {
    super(message);
    Object.assign(this, { name: 'LeaseLost', code });
  }
}

/** A stream without a word for this time is dead: ifmatch sends a comment each 15 seconds. */
const SILENCE_MAX_MS = 40_000;

/**
 * Holds the lease of a resource, until it is released or lost, or the page is closed. Waits in line for it.
 *
 * @param {string | URL} url  the URL of the lease
 * @param {{holder?: string, seconds?: number, onWaiting?: (lease: object) => void}} [wish]
 *   `holder`: the name that others see. `seconds`: the term of the lease, which ifmatch renews.
 *   `onWaiting`: called with the lease of the client that the page waits for.
 * @returns {Promise<{id: string, fence: number, etag?: string, signal: AbortSignal, release: () => Promise<void>}>}
 *   `id`: to be sent with each write, as `Lease-Id`. `signal`: aborted with a `LeaseLost` when the lease is lost.
 */
export async function holdLease(url, { holder, seconds, onWaiting } = {}) {
  const id = crypto.randomUUID(), fields = { 'Lease-Id': id };
  if (holder !== undefined) fields['Lease-Holder'] = `UTF-8''${encodeURIComponent(holder)}`;
  if (seconds !== undefined) fields['Lease-Duration'] = String(seconds);
  const lost = new AbortController();
  let stream = new AbortController(), retryMs = 1000;

  /** Sends the request once. Yields its events, and ends where the connection breaks. */
  async function* events(preferences) {
    stream = new AbortController();
    let silence;
    const listen = () => {
      clearTimeout(silence);
      silence = setTimeout(() => stream.abort(), SILENCE_MAX_MS);
    };
    try {
      const headers = { ...fields, ...preferences, 'Accept': 'text/event-stream' };
      const answer = await fetch(url, { method: 'POST', headers, cache: 'no-store', signal: stream.signal });
      if (!answer.ok) return yield { name: 'refused', data: await answer.json().catch(() => ({})), answer };
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = '', piece; listen(), !(piece = await reader.read()).done;) {
        const blocks = (text + piece.value).split('\n\n');
        text = blocks.pop();
        for (const block of blocks) {
          const { event: name, data, retry } = Object.fromEntries(block.split('\n').map(line => line.split(/: (.*)/, 2)));
          if (retry) retryMs = Number(retry);
          if (name) yield { name, data: JSON.parse(data) };
        }
      }
    } catch {
      // The connection has broken.
    } finally {
      clearTimeout(silence);
    }
  }

  const pause = ms => new Promise(done => setTimeout(done, ms));
  function lose(reason) {
    lost.abort(reason);
    stream.abort();
  }

  /** Asks until the page has the lease. Returns the grant, and the stream that holds it. */
  async function acquire() {
    for (;;) {
      const heard = events({ 'Prefer': 'wait=60' });
      let after = retryMs;
      for (let next; !(next = await heard.next()).done;) {
        const { name, data, answer } = next.value;
        if (name === 'granted') return { granted: data, heard };
        if (name === 'waiting') onWaiting?.(data);
        if (name === 'lost') throw new LeaseLost(data.reason);
        const isTemporary = data.code === 'lease-held' || answer?.headers.has('Retry-After') || answer?.status >= 500;
        if (name === 'refused' && !isTemporary) throw new LeaseLost(data.code, data.detail);
        after = 1000 * (Number(answer?.headers.get('Retry-After')) || 0) || retryMs;
      }
      await pause(after);
    }
  }

  /** Reads the stream until the lease is lost. Comes back after a break, as long as nobody else has had the lease. */
  async function keep({ granted, heard }) {
    for (let brokenAt = Infinity; !lost.signal.aborted;) {
      for (let next; !(next = await heard.next()).done;) {
        const { name, data, answer } = next.value;
        if (name === 'lost') return lose(new LeaseLost(data.reason));
        if (name === 'granted' && data.fence !== granted.fence) return lose(new LeaseLost('expired'));
        if (name === 'granted') brokenAt = Infinity;
        if (name === 'refused' && answer?.status < 500) return lose(new LeaseLost(data.code, data.detail));
      }
      brokenAt = Math.min(brokenAt, performance.now());
      if (performance.now() > brokenAt + granted.seconds * 1000) return lose(new LeaseLost('unknown'));
      await pause(retryMs);
      if (!lost.signal.aborted) heard = events({});
    }
  }

  const held = await acquire();
  keep(held);
  return {
    id,
    fence: held.granted.fence,
    etag: held.granted.etag,
    signal: lost.signal,
    async release() {
      lose(new LeaseLost('released'));
      stream.abort();
      await fetch(url, { method: 'DELETE', headers: { 'Lease-Id': id }, keepalive: true }).catch(() => {});
    },
  };
}
