import {
  GaveUp, IfmatchError, KeyRefused, LeaseEnded, LeaseHeld, OutcomeUnknown, PreconditionFailed, Refused, Unreachable,
} from './errors.js';
import { absolute, ask, backOff, isTemporary, refusalOf, showsState, type Answer, type Connection } from './http.js';
import type { Lease } from './lease.js';

/** How documents are read and written. */
export interface Format<T> {
  readonly contentType: string;
  parse(text: string): T;
  stringify(document: T): string;
}

/** JSON, the default. */
export const json: Format<any> = { contentType: 'application/json', parse: JSON.parse, stringify: JSON.stringify };

/** Plain text. */
export const text: Format<string> = { contentType: 'text/plain; charset=utf-8', parse: String, stringify: String };

export interface UpdateOptions<T> extends Connection {
  /** The document that `change` gets where the resource does not exist. Without it, a 404 is an error. */
  readonly initial?: T;
  /**
   * Whether the change is in this document already, found by a mark that belongs to this change alone. With it, a
   * change is made once, whatever is lost on the way.
   */
  readonly isApplied?: (document: T) => boolean;
  /** The same without a mark, on routes with `idempotency = "accept"`: a random text that belongs to this call alone. */
  readonly idempotencyKey?: string;
  /** The lease under which to write. */
  readonly lease?: Lease;
  /** How often to try, 40 times by default. */
  readonly attempts?: number;
  /** How the document is written, by default as JSON. */
  readonly format?: Format<T>;
}

/** A document that was written, or had the change already. */
export interface Updated<T> {
  readonly document: T;
  /** The tag for the next write, if it is known. */
  readonly etag: string | null;
}

/** The version that a write is based on; without a tag, the resource does not exist. */
interface Version<T> {
  readonly document: T;
  readonly etag: string | null;
}

interface Write<T> {
  readonly document: T;
  readonly body: string;
  readonly fields: Record<string, string>;
}

/**
 * Reads the document at `url`, changes it and writes it, again and again until no other client came in between.
 *
 * @param change changes the document that it gets, or returns another one. It is called once for each version, so it
 *   does nothing else.
 */
export async function update<T>(
  url: string | URL,
  change: (document: T) => T | void | Promise<T | void>,
  options: UpdateOptions<T> = {},
): Promise<Updated<T>> {
  const { attempts = 40, signal } = options;
  const target = absolute(url).href;
  const work = new Work(target, change, options);
  for (let attempt = 1; ; attempt++) {
    const outcome = await work.attempt();
    if (!(outcome instanceof IfmatchError)) return outcome;
    const isLast = attempt >= attempts;
    if (isLast && work.doubt) throw new OutcomeUnknown(`PUT ${target}`, outcome);
    if (isLast) throw new GaveUp(`on ${target} after ${attempts} attempts`, outcome);
    await backOff(attempt, outcome, signal);
  }
}

class Work<T> {
  /** Why it is not known whether the write was applied. */
  doubt: IfmatchError | undefined;
  /** The same write is sent until its outcome is known: its tag keeps it from being applied twice. */
  #write: Write<T> | undefined;
  #writes = 0;
  readonly #format: Format<T>;

  constructor(
    readonly url: string,
    readonly change: (document: T) => T | void | Promise<T | void>,
    readonly options: UpdateOptions<T>,
  ) {
    this.#format = options.format ?? json;
  }

  /** Reads if need be, and writes once. Returns an error if another attempt may succeed, and throws all others. */
  async attempt(): Promise<Updated<T> | IfmatchError> {
    this.options.lease?.signal.throwIfAborted();
    if (this.#write === undefined) {
      const version = await this.#read();
      if (version instanceof IfmatchError) return version;
      if (this.options.isApplied?.(version.document)) return version;
      this.#write = await this.#compose(version);
    }
    const { document, body, fields } = this.#write;
    const answer = await this.#ask('PUT', fields, body);
    if (answer instanceof Unreachable) {
      if (answer.wasSent) this.doubt = answer;
      return answer;
    }
    if ([200, 201, 204].includes(answer.status)) return { document, etag: answer.headers.get('ETag') };
    const refusal = refusalOf(`PUT ${this.url}`, answer);
    if (refusal instanceof PreconditionFailed) return this.#startAnew(answer, refusal);
    if (refusal.code === 'idempotency-outcome-unknown' || refusal.code === 'idempotency-key-in-use') {
      this.doubt = refusal;
      return this.#startAnew(answer, refusal);
    }
    if (mayBeApplied(refusal)) this.doubt = refusal;
    if (isTemporary(refusal) || refusal instanceof LeaseHeld) return refusal;
    throw this.doubt === refusal ? new OutcomeUnknown(`PUT ${this.url}`, refusal) : this.#final(refusal);
  }

  /** Another change came first: changes what is there now. */
  async #startAnew(answer: Answer, refusal: Refused): Promise<Updated<T> | IfmatchError> {
    const version = this.#told(answer) ?? await this.#read();
    if (version instanceof IfmatchError) return version;
    const { isApplied, idempotencyKey } = this.options;
    if (isApplied?.(version.document)) return version;
    const isJudgedByKey = idempotencyKey !== undefined && !(this.doubt instanceof KeyRefused);
    if (this.doubt && !isApplied && !isJudgedByKey) throw new OutcomeUnknown(`PUT ${this.url}`, this.doubt);
    this.#write = await this.#compose(version);
    this.doubt = undefined;
    return refusal;
  }

  /** The current state, where the refusal has it. */
  #told({ headers, text }: Answer): Version<T> | undefined {
    return showsState(headers) ? { document: this.#format.parse(text), etag: headers.get('ETag') } : undefined;
  }

  async #read(): Promise<Version<T> | IfmatchError> {
    const answer = await this.#ask('GET', {});
    if (answer instanceof Unreachable) return answer;
    const etag = answer.headers.get('ETag');
    if (answer.status === 200 && etag !== null) return { document: this.#format.parse(answer.text), etag };
    const request = `GET ${this.url}`;
    if (answer.status === 200) return new IfmatchError(`${request}: the answer has no ETag`);
    const refusal = refusalOf(request, answer);
    const isAbsent = [404, 410].includes(answer.status) && refusal.code === undefined;
    const { initial } = this.options;
    if (isAbsent && initial !== undefined) return { document: structuredClone(initial), etag: null };
    if (isTemporary(refusal)) return refusal;
    throw this.#final(refusal);
  }

  /** Reads and writes carry the id of the lease, and the refusal of either ends it. */
  #final(refusal: Refused): IfmatchError {
    const { lease } = this.options;
    return lease && refusal instanceof LeaseEnded ? lease.lose(refusal) : refusal;
  }

  async #compose({ document, etag }: Version<T>): Promise<Write<T>> {
    const changed = await this.change(document) ?? document;
    const { idempotencyKey } = this.options;
    this.#writes += 1;
    const condition: Record<string, string> = etag === null ? { 'If-None-Match': '*' } : { 'If-Match': etag };
    // Another body is another write, and has another key.
    const key = this.#writes === 1 ? idempotencyKey : `${idempotencyKey}-${this.#writes}`;
    const fields = idempotencyKey === undefined || key === undefined ? condition : { ...condition, 'Idempotency-Key': key };
    return { document: changed, body: this.#format.stringify(changed), fields };
  }

  #ask(method: string, fields: Record<string, string>, body?: string): Promise<Answer | Unreachable> {
    const { lease } = this.options;
    const proof: Record<string, string> = lease === undefined ? {} : { 'Lease-Id': lease.id };
    const content: Record<string, string> =
      body === undefined ? {} : { 'Content-Type': this.#format.contentType, 'Prefer': 'return=representation' };
    const all = { ...fields, ...proof, ...content };
    return ask({ ...this.options, url: this.url, method, fields: all, ...(body === undefined ? {} : { body }) });
  }
}

/** Whether the backend may have applied the write, for all that the answer says. */
function mayBeApplied(refusal: Refused): boolean {
  const { code, status } = refusal;
  if (code !== undefined) return refusal.isInDoubt || code.startsWith('upstream-');
  // 307 and 308 say that nothing was done; a page learns of no status of a redirect (0).
  return status < 400 ? status !== 307 && status !== 308 : status === 408 || status === 499 || status >= 500;
}
