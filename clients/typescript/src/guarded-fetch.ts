import { Refused, Unreachable, type Problem } from './errors.js';
import { pause, refusalOf, showsState } from './http.js';

/** The options of a guarded `fetch` beside those of `fetch`. */
export interface GuardedInit extends RequestInit {
  /** The response that this write is based on, if it is not the last one that was read from the URL. */
  readonly base?: Response | undefined;
  /** The write may only create the resource (`If-None-Match: *`). */
  readonly create?: boolean;
}

/** A `fetch` that sends the tag of the version that was read with each write. */
export type GuardedFetch = (resource: RequestInfo | URL, init?: GuardedInit) => Promise<Response>;

export interface GuardedFetchOptions {
  /** Sends the requests in place of the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** How long a write waits in all for other writes (409 `write-in-flight`): a minute by default. */
  readonly maxWaitMs?: number;
  /** The number of URLs whose last version is kept: 100 by default. */
  readonly maxKept?: number;
}

/** The versions of a refused write. All bodies are unread. */
export interface Versions {
  /** The version that the write was based on, if it is known as a whole. */
  readonly read: Response | null;
  /**
   * The state after the refusal: from the refusal itself, or the answer to a GET, which is a 404 if the resource is gone.
   * Null if there was no answer.
   */
  readonly current: Response | null;
  /** The write. */
  readonly written: Request;
}

/** A write that was refused with 409 or 412, with all versions that a person needs to decide. */
export class Conflict extends Refused implements Versions {
  override name = 'Conflict';
  readonly read: Response | null;
  readonly current: Response | null;
  readonly written: Request;

  constructor(problem: Problem, { read, current, written }: Versions) {
    super(`${written.method} ${written.url}`, problem);
    this.read = read;
    this.current = current;
    this.written = written;
  }
}

/** `copy` is never read, so it can be cloned. */
interface Version {
  readonly tag: string | null;
  readonly copy: Response | null;
}

const WRITES = ['PUT', 'PATCH', 'DELETE'];

/** Fields by which a write says itself why it may happen. */
const PROOFS = ['If-Match', 'If-None-Match', 'Lease-Id'];

/** Makes a `fetch` with a memory of its own. An editor that keeps a version open has one for itself. */
export function guardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const { maxWaitMs = 60_000, maxKept = 100 } = options;
  /** The last version of each URL, the oldest first. */
  const kept = new Map<string, Version>();
  /** Copies of the responses that were handed out. */
  const copies = new WeakMap<Response, Response>();

  async function send(request: Request, init?: RequestInit): Promise<Response> {
    try {
      return await (options.fetch ?? fetch)(request, init);
    } catch (error) {
      request.signal.throwIfAborted();
      throw new Unreachable(`${request.method} ${request.url}`, error);
    }
  }

  function keep(url: string, version: Version) {
    kept.delete(url);
    if (version.tag !== null) kept.set(url, version);
    const [oldest] = kept.keys();
    if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
  }

  async function read(request: Request): Promise<Response> {
    // A tag from a cache is one of yesterday.
    const response = await send(request, { cache: 'no-store' });
    copies.set(response, response.clone());
    return response;
  }

  async function readAndKeep(request: Request): Promise<Response> {
    const response = await read(request);
    const { status, headers } = response;
    if (status === 200) keep(request.url, { tag: headers.get('ETag'), copy: copies.get(response) ?? null });
    if (status === 404 || status === 410) keep(request.url, { tag: null, copy: null });
    return response;
  }

  /** The state that a refused write met. */
  async function currentOf(request: Request, { body, headers: shown }: Response): Promise<Response | null> {
    if (showsState(shown)) {
      const current = new Response(body, { headers: shown });
      copies.set(current, current.clone());
      return current;
    }
    const { url, credentials, mode, signal } = request;
    const headers = new Headers(request.headers);
    for (const name of ['If-Match', 'If-None-Match', 'Content-Type', 'Idempotency-Key', 'Prefer']) headers.delete(name);
    return read(new Request(url, { credentials, mode, signal, headers })).catch(() => null);
  }

  async function keepWritten(request: Request, response: Response) {
    const tag = request.method === 'DELETE' ? null : response.headers.get('ETag');
    let copy: Response | null = null;
    // Only the server knows the result of a PATCH.
    if (request.method === 'PUT' && tag !== null) {
      const headers = { 'ETag': tag, 'Content-Type': request.headers.get('Content-Type') ?? '' };
      copy = new Response(await request.clone().blob(), { headers });
    }
    keep(request.url, { tag, copy });
  }

  async function write(request: Request, base: Version | undefined): Promise<Response> {
    // Each attempt is the same request: a version that was read meanwhile takes no part in it.
    for (let leftMs = maxWaitMs; ;) {
      const response = await send(request.clone());
      if (response.ok) await keepWritten(request, response);
      const { status, headers } = response;
      if (status !== 409 && status !== 412) return response;
      const answer = { status, headers, text: await response.clone().text() };
      const refusal = refusalOf(`${request.method} ${request.url}`, answer);
      const waitMs = refusal.retryAfterMs ?? 1000;
      // The code says that nothing was written; so the same may be sent again.
      if (refusal.code !== 'write-in-flight' || waitMs > leftMs) {
        const current = await currentOf(request, response);
        throw new Conflict(refusal.problem, { read: base?.copy?.clone() ?? null, current, written: request });
      }
      leftMs -= waitMs;
      await pause(waitMs, request.signal);
    }
  }

  return async function guarded(resource, { base: given, create = false, ...init } = {}) {
    const request = new Request(resource, init);
    const { headers, method, url } = request;
    if (!WRITES.includes(method)) return method === 'GET' ? readAndKeep(request) : send(request);
    const base = given ? { tag: given.headers.get('ETag'), copy: copies.get(given) ?? null } : kept.get(url);
    if (create) headers.set('If-None-Match', '*');
    else if (base?.tag && !headers.has('If-Match') && !headers.has('If-None-Match')) headers.set('If-Match', base.tag);
    const isProven = PROOFS.some(name => headers.has(name));
    if (!isProven) throw new TypeError(`${method} ${url}: no ETag of it is known; read it`);
    if (!headers.has('Prefer')) headers.set('Prefer', 'return=representation');
    return write(request, create ? undefined : base);
  };
}
