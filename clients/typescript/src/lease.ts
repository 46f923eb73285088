import { GaveUp, IfmatchError, LeaseHeld, LeaseLost, Refused, Unreachable, type LossReason } from './errors.js';
import { absolute, ask, isTemporary, pause, type Connection } from './http.js';
import { mayStillHold, renewed, streamed, type Grant, type LeaseEvent } from './lease-events.js';

export interface LeaseOptions extends Connection {
  /** The name that others see, in any script. */
  readonly holder?: string;
  /** The term of the lease, which is renewed until its release. */
  readonly seconds?: number;
  /** How long to wait for the lease, in milliseconds: a minute by default. `Infinity` waits until the signal. */
  readonly maxWaitMs?: number;
  /** Called with the reason each time that the client has to wait: a {@link LeaseHeld}, or why there is no answer. */
  readonly onWaiting?: (reason: IfmatchError) => void;
  /** The path before those of leases (`lease.prefix`). */
  readonly prefix?: string;
  /** While the client waits, it ends the wait. Later it releases the lease. */
  readonly signal?: AbortSignal;
}

/** The longest time in line that a request asks for. */
const LINE_MAX_SECONDS = 60;

/** The lease ends by itself if its release does not arrive, so no client waits long for that. */
const RELEASE_MS = 5000;

/** A lease that this client holds, until it is released or lost, or the page is closed. */
export class Lease {
  /** Aborted with a {@link LeaseLost} when the lease is lost or released. */
  readonly signal: AbortSignal;
  readonly #lost = new AbortController();
  readonly #options: LeaseOptions;
  readonly #resource: string;
  readonly #url: string;
  /** A client that chose the id can claim a grant whose answer is lost. Without random numbers, ifmatch chooses it. */
  #id = randomId();
  #grant: Grant | undefined;
  /** Streams cannot get through. */
  #renews = false;
  #end: ReturnType<typeof setTimeout> | undefined;

  private constructor(url: string | URL, options: LeaseOptions) {
    this.signal = this.#lost.signal;
    this.#options = options;
    const target = absolute(url);
    this.#resource = target.href;
    target.pathname = (options.prefix ?? '/.leases') + target.pathname;
    this.#url = target.href;
  }

  /**
   * Waits for the lease of the resource at `url`, and holds it. Read the resource after that: an earlier read may be old.
   */
  static async acquire(url: string | URL, options: LeaseOptions = {}): Promise<Lease> {
    const lease = new Lease(url, options);
    const heard = await lease.#acquire();
    void lease.#keep(heard);
    const { signal } = options;
    signal?.addEventListener('abort', () => void lease.release(), { once: true });
    lease.signal.addEventListener('abort', () => clearTimeout(lease.#end), { once: true });
    return lease;
  }

  /** The secret that proves the lease. */
  get id(): string {
    return this.#held.id;
  }

  /** A number that grows with each lease of the resource. */
  get fence(): number {
    return this.#held.fence;
  }

  /** The tag of the resource when the lease was granted, if it is known. */
  get etag(): string | null {
    return this.#held.etag;
  }

  /** The fields of a write under this lease. */
  get headers(): { 'Lease-Id': string } {
    return { 'Lease-Id': this.id };
  }

  /** Gives the lease to the next client in line. */
  async release(): Promise<void> {
    if (this.signal.aborted) return;
    this.#lose('released');
    await this.#giveBack();
  }

  /** Ends the lease because a write was refused with its id. Returns the reason of the signal. */
  lose(refusal: Refused): LeaseLost {
    this.#lose(refusal.code ?? `${refusal.status}`, refusal);
    return this.signal.reason;
  }

  get #held(): Grant {
    if (this.#grant === undefined) throw new Error('a lease is given out after its grant');
    return this.#grant;
  }

  /** Asks until the client has the lease. Returns what it goes on hearing of it. */
  async #acquire(): Promise<AsyncGenerator<LeaseEvent>> {
    const { maxWaitMs = 60_000, onWaiting, signal } = this.#options;
    let last: IfmatchError = new Unreachable(`POST ${this.#url}`, `nothing within ${maxWaitMs / 1000} s`);
    const startMs = performance.now();
    const patience = new AbortController();
    const giveUp = () =>
      patience.abort(new GaveUp(`on the lease of ${this.#resource} after ${maxWaitMs / 1000} s`, last));
    const timer = Number.isFinite(maxWaitMs) ? setTimeout(giveUp, maxWaitMs) : undefined;
    const onAbort = () => patience.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort);
    // The signal of the lease ends what it hears, and before the grant so does the patience.
    const untilGranted = () => this.#lost.abort(patience.signal.reason);
    patience.signal.addEventListener('abort', untilGranted);
    try {
      for (;;) {
        patience.signal.throwIfAborted();
        const leftSeconds = Math.ceil((startMs + maxWaitMs - performance.now()) / 1000);
        const heard = this.#ask(Math.min(LINE_MAX_SECONDS, leftSeconds));
        let afterMs = 1000;
        for (let next; !(next = await heard.next()).done;) {
          const event = next.value;
          if (event.name === 'granted') {
            this.#isGranted(event.grant, event.untilMs);
            return heard;
          }
          if (event.name === 'not-streamed') {
            this.#mustRenew(event.id);
            afterMs = 0;
            continue;
          }
          if (event.name === 'lost') throw new LeaseLost(this.#resource, event.reason);
          last = event.name === 'waiting' ? event.held : event.name === 'refused' ? event.refusal : event.error;
          if (event.name === 'refused' && !mayComeLater(event.refusal)) throw event.refusal;
          if (event.name === 'broken') afterMs = event.retryMs;
          if (event.name === 'refused') afterMs = this.#afterRefusal(event.refusal);
          onWaiting?.(last);
        }
        await pause(afterMs, patience.signal);
      }
    } catch (error) {
      this.#lost.abort(error);
      // A grant whose answer was lost is free for another client.
      if (!(error instanceof Refused)) void this.#giveBack();
      throw error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      patience.signal.removeEventListener('abort', untilGranted);
    }
  }

  /** Hears of the lease until it is lost. Comes back after a break, as long as no other client has had it. */
  async #keep(heard: AsyncGenerator<LeaseEvent>): Promise<void> {
    let last: IfmatchError | undefined;
    try {
      for (;;) {
        let afterMs = 1000;
        for (let next; !(next = await heard.next()).done;) {
          const event = next.value;
          if (event.name === 'lost') return this.#lose(event.reason);
          if (event.name === 'granted') {
            if (event.grant.fence !== this.fence) return this.#loseAnother();
            this.#isGranted(event.grant, event.untilMs);
          } else if (event.name === 'not-streamed') {
            this.#mustRenew(event.id);
            afterMs = 0;
          } else if (event.name === 'refused') {
            last = event.refusal;
            if (!mayStillHold(last)) return this.#lose(event.refusal.code ?? `${event.refusal.status}`, last);
            afterMs = this.#afterRefusal(event.refusal);
          } else if (event.name === 'broken') {
            last = event.error;
            afterMs = event.retryMs;
            this.#endsAt(event.untilMs, last);
          }
        }
        await pause(afterMs, this.signal);
        heard = this.#ask(0);
      }
    } catch (error) {
      if (!this.signal.aborted) this.#lose('unknown', error instanceof IfmatchError ? error : last);
    }
  }

  #ask(waitSeconds: number): AsyncGenerator<LeaseEvent> {
    const { holder, seconds } = this.#options;
    const fields: Record<string, string> = {};
    if (this.#id !== undefined) fields['Lease-Id'] = this.#id;
    // A field has no other way to carry all scripts (RFC 8187).
    if (holder !== undefined) fields['Lease-Holder'] = `UTF-8''${encodeURIComponent(holder)}`;
    if (seconds !== undefined) fields['Lease-Duration'] = String(seconds);
    const connection = { ...this.#options, signal: this.signal };
    const wish = { url: this.#url, connection, fields, waitSeconds, heldSeconds: this.#grant?.seconds };
    return this.#renews ? renewed(wish) : streamed(wish);
  }

  #isGranted(grant: Grant, untilMs: number) {
    this.#id = grant.id;
    this.#grant ??= grant;
    clearTimeout(this.#end);
    this.#end = undefined;
    if (untilMs !== Infinity) this.#endsAt(untilMs);
  }

  /** The lease is lost at this time, unless another grant comes before it. */
  #endsAt(untilMs: number, last?: IfmatchError) {
    this.#end ??= setTimeout(() => this.#lose('unknown', last), untilMs - performance.now());
  }

  #mustRenew(id: string | null) {
    this.#renews = true;
    this.#id = id ?? this.#id;
  }

  /** How long to wait. Where ifmatch has no place for a stream, the client renews. */
  #afterRefusal(refusal: Refused): number {
    if (refusal.code === 'overloaded' && !this.#renews) {
      this.#renews = true;
      return 0;
    }
    return refusal.retryAfterMs ?? 1000;
  }

  /** Another client has had the lease in between, so what this client knows is old. */
  #loseAnother() {
    this.#lose('expired');
    void this.#giveBack();
  }

  #lose(reason: LossReason, last?: IfmatchError) {
    this.#lost.abort(new LeaseLost(this.#resource, reason, last));
  }

  async #giveBack(): Promise<void> {
    if (this.#id === undefined) return;
    const { signal: _, ...connection } = this.#options;
    const fields = { 'Lease-Id': this.#id };
    await ask({ ...connection, url: this.#url, method: 'DELETE', fields, isLast: true, patienceMs: RELEASE_MS });
  }
}

/** Whether another attempt may get the lease. */
function mayComeLater(refusal: Refused): boolean {
  return refusal instanceof LeaseHeld || isTemporary(refusal) || refusal.status >= 500;
}

/** A random UUID of version 4. `crypto.randomUUID` is missing in pages without TLS. */
function randomId(): string | undefined {
  const bytes = globalThis.crypto?.getRandomValues(new Uint8Array(16));
  if (bytes === undefined) return undefined;
  const digits = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
  const variant = '89ab'.charAt((bytes[8] ?? 0) & 3);
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`, variant + digits.slice(17, 20)];
  return [...parts, digits.slice(20)].join('-');
}
