import { IfmatchError, Refused, Unreachable, refused, type Code, type Problem } from './errors.js';

/** How to reach a resource. All functions of this package take these options. */
export interface Connection {
  /** Sends the requests in place of the global `fetch`, for example with `credentials`. */
  readonly fetch?: typeof fetch;
  /** Fields that each request has, for example `Authorization`. */
  readonly headers?: HeadersInit;
  /** Ends the work. */
  readonly signal?: AbortSignal | undefined;
}

/** A request that is answered as a whole. */
export interface Question extends Connection {
  readonly url: string;
  readonly method: string;
  /** Fields beside those of the connection. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: BodyInit;
  /** The end of the patience, in milliseconds. */
  readonly patienceMs?: number;
  /** It outlives the page. */
  readonly isLast?: boolean;
}

/** A whole answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** ifmatch itself may wait 30 s for its turn, and 30 s for the backend. */
const PATIENCE_MS = 90_000;

/** Sends a request once and reads its answer. */
export async function ask(question: Question): Promise<Answer | Unreachable> {
  const { url, method, fields, body, signal, patienceMs = PATIENCE_MS, isLast = false } = question;
  signal?.throwIfAborted();
  const end = new AbortController();
  const onAbort = () => end.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  const timer = setTimeout(() => end.abort(new Error(`nothing within ${patienceMs / 1000} s`)), patienceMs);
  try {
    const answer = await (question.fetch ?? fetch)(url, {
      method,
      headers: withFields(question.headers, fields),
      // A tag from a cache is one of yesterday.
      cache: 'no-store',
      // After a redirect, the answer no longer says whether the write was applied.
      redirect: method === 'GET' ? 'follow' : 'manual',
      keepalive: isLast,
      signal: end.signal,
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  } catch (error) {
    signal?.throwIfAborted();
    return new Unreachable(`${method} ${url}`, error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The fields of the connection with others in their place or beside them. */
export function withFields(headers: HeadersInit | undefined, fields: Readonly<Record<string, string>> = {}): Headers {
  const all = new Headers(headers);
  for (const [name, value] of Object.entries(fields)) all.set(name, value);
  return all;
}

/** Whether a refusal has the current state in its body, as `Prefer: return=representation` asks. */
export function showsState(headers: Headers): boolean {
  return headers.has('ETag') && (headers.get('Preference-Applied')?.includes('return=representation') ?? false);
}

/** The error that an answer without success is. */
export function refusalOf(request: string, { status, headers, text }: Answer): Refused {
  const told = headers.get('Content-Type')?.startsWith('application/problem+json') ? parsed(text) : {};
  // With the current state in its body, a refusal has its code in this field alone.
  const code = told.code ?? /^ifmatch;.*details="([a-z-]+)"/.exec(headers.get('Proxy-Status') ?? '')?.[1] as Code;
  const after = headers.get('Retry-After') ?? '';
  const retry = /^\d+$/.test(after) ? { retry_after: Number(after) } : {};
  const detail = told.detail ?? (code === undefined ? text.slice(0, 200) : '');
  return refused(request, { ...told, ...retry, detail, status, ...(code === undefined ? {} : { code }) });
}

function parsed(text: string): Partial<Problem> {
  try {
    return JSON.parse(text) as Problem;
  } catch {
    return {};
  }
}

/** Whether another attempt may succeed. */
export function isTemporary(error: IfmatchError): boolean {
  if (!(error instanceof Refused)) return error instanceof Unreachable;
  return error.retryAfterMs !== undefined || [502, 503, 504].includes(error.status);
}

/** Waits before an attempt: for as long as the last answer has said, and a random time that grows with each attempt. */
export function backOff(attempt: number, last: IfmatchError, signal?: AbortSignal): Promise<void> {
  const after = last instanceof Refused ? last.retryAfterMs ?? 0 : 0;
  return pause(after + Math.random() * Math.min(1000, 20 * 2 ** attempt), signal);
}

/** Waits. A signal ends it with its reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** The absolute URL of a resource; in a page, relative to its address. */
export function absolute(url: string | URL): URL {
  const base = (globalThis as { document?: { baseURI: string } }).document?.baseURI;
  return new URL(url, base);
}
