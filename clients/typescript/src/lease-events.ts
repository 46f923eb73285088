import { LeaseHeld, Refused, Unreachable, refused, type IfmatchError, type LossReason, type Problem } from './errors.js';
import { listen } from './event-stream.js';
import { ask, pause, refusalOf, type Answer, type Connection } from './http.js';

export interface Grant {
  readonly id: string;
  readonly fence: number;
  readonly etag: string | null;
  readonly seconds: number;
}

/** The news of a request for a lease, held by a stream or by renewals. `untilMs` is the end of the lease by `performance.now()`. */
export type LeaseEvent =
  | { readonly name: 'waiting'; readonly held: LeaseHeld; readonly place: number }
  | { readonly name: 'granted'; readonly grant: Grant; readonly untilMs: number }
  | { readonly name: 'lost'; readonly reason: LossReason }
  | { readonly name: 'refused'; readonly refusal: Refused }
  /** The request is answered, but not by a stream: a gateway has removed the field that asks for one. */
  | { readonly name: 'not-streamed'; readonly id: string | null }
  | { readonly name: 'broken'; readonly error: Unreachable; readonly retryMs: number; readonly untilMs: number };

/** The content of a request for a lease. */
export interface Wish {
  /** The URL of the lease. */
  readonly url: string;
  readonly connection: Connection;
  readonly fields: Readonly<Record<string, string>>;
  /** How long to wait in line. */
  readonly waitSeconds: number;
  /** The term of the lease that the client has already. */
  readonly heldSeconds: number | undefined;
}

/** Holds a lease by a stream: ifmatch renews it. */
export async function* streamed(wish: Wish): AsyncGenerator<LeaseEvent, void> {
  const { url, connection } = wish;
  let seconds = wish.heldSeconds ?? 0;
  const request = `POST ${url}`;
  for await (const heard of listen({ ...connection, url, method: 'POST', fields: inLine(wish) })) {
    if (heard.kind === 'end') {
      const untilMs = performance.now() + 1000 * seconds;
      yield { name: 'broken', error: heard.error, retryMs: heard.retryMs, untilMs };
    } else if (heard.kind === 'answer') {
      const { answer } = heard;
      if (isGrant(answer)) yield { name: 'not-streamed', id: answer.headers.get('Lease-Id') };
      else yield { name: 'refused', refusal: refusalOfLease(request, answer) };
    } else if (heard.name === 'granted') {
      const { id, fence, etag, seconds: term } = heard.data as { id: string; fence: number; etag?: string; seconds: number };
      seconds = term;
      yield { name: 'granted', grant: { id, fence, etag: etag ?? null, seconds }, untilMs: Infinity };
    } else if (heard.name === 'waiting') {
      const { holder, place } = heard.data as { holder?: string; place: number };
      yield { name: 'waiting', held: heldBy(request, holder), place };
    } else if (heard.name === 'lost') {
      const { reason } = heard.data as { reason: LossReason };
      yield { name: 'lost', reason };
    } else if (heard.name === 'refused') {
      yield { name: 'refused', refusal: refusalOf(request, toldInStream(heard.data as Problem)) };
    }
  }
}

/** Holds a lease by renewals, for where a stream cannot get through. */
export async function* renewed(wish: Wish): AsyncGenerator<LeaseEvent, void> {
  const { url, connection } = wish;
  let untilMs = -Infinity;
  for (let method = wish.heldSeconds === undefined ? 'POST' : 'PUT'; ; method = 'PUT') {
    // The term counts from before the request: the client cannot know when the answer was written.
    const sentMs = performance.now();
    const fields = method === 'POST' ? inLine(wish) : wish.fields;
    const answer = await ask({ ...connection, url, method, fields });
    if (answer instanceof Unreachable) {
      yield { name: 'broken', error: answer, retryMs: 1000, untilMs };
      return;
    }
    if (!isGrant(answer)) {
      yield { name: 'refused', refusal: refusalOfLease(`${method} ${url}`, answer) };
      return;
    }
    const { headers } = answer;
    const seconds = Number(headers.get('Lease-Duration'));
    untilMs = sentMs + 1000 * seconds;
    const id = headers.get('Lease-Id') ?? wish.fields['Lease-Id'] ?? '';
    const fence = Number(headers.get('Fencing-Token'));
    wish = { ...wish, fields: { ...wish.fields, 'Lease-Id': id } };
    yield { name: 'granted', grant: { id, fence, etag: headers.get('ETag'), seconds }, untilMs };
    await pause(Math.max(0, sentMs + (1000 * seconds) / 3 - performance.now()), connection.signal);
  }
}

/** Whether a holder is to try again after an error: the lease may still be its own. */
export function mayStillHold(error: IfmatchError): boolean {
  return !(error instanceof Refused) || error.status >= 500 || error.code === 'write-in-flight';
}

/** Whether an answer grants a lease. A backend may answer a path that it does not know with a success. */
function isGrant({ status, headers }: Answer): boolean {
  return status >= 200 && status < 300 && headers.has('Fencing-Token');
}

/** The error that an answer without a lease is. */
function refusalOfLease(request: string, answer: Answer): Refused {
  const { status, headers } = answer;
  const isOfBackend = !headers.get('Proxy-Status')?.startsWith('ifmatch');
  if (!isOfBackend || status >= 300 && status !== 404 && status !== 405) return refusalOf(request, answer);
  const detail = 'the backend has answered, because ifmatch has no lease here: the route needs policy = "pessimistic"';
  return refused(request, { status, detail });
}

function inLine({ fields, waitSeconds }: Wish): Record<string, string> {
  return waitSeconds > 0 ? { ...fields, Prefer: `wait=${waitSeconds}` } : { ...fields };
}

function heldBy(request: string, holder: string | undefined): LeaseHeld {
  const detail = 'the client waits in line';
  return new LeaseHeld(request, { status: 409, code: 'lease-held', detail, ...(holder === undefined ? {} : { holder }) });
}

function toldInStream(problem: Problem) {
  const headers = new Headers({ 'Content-Type': 'application/problem+json' });
  if (problem.retry_after !== undefined) headers.set('Retry-After', String(problem.retry_after));
  return { status: problem.status, headers, text: JSON.stringify(problem) };
}
