/** The codes of the refusals that a client can meet, by the class of the error (docs/refusals.md). */
const CODES = {
  PreconditionFailed: ['precondition-failed'],
  PreconditionRequired: ['precondition-required'],
  LeaseHeld: ['lease-held', 'lease-id-missing', 'sharing-violation'],
  LeaseEnded: [
    'lease-lost', 'lease-id-mismatch', 'lease-not-present', 'lease-broken', 'lease-breaking', 'lease-hold-max',
  ],
  Busy: ['write-in-flight', 'delete-pending', 'idempotency-in-flight', 'unsettled'],
  KeyRefused: [
    'idempotency-key-missing', 'idempotency-key-in-use', 'idempotency-mismatch', 'idempotency-outcome-unknown',
  ],
  UpstreamFailed: ['upstream-failed', 'upstream-timeout'],
  Unavailable: ['store-unavailable', 'store-full', 'overloaded', 'validator-unavailable', 'too-many-leases'],
  BadRequest: [
    'malformed-precondition', 'malformed-request', 'malformed-lease-header', 'ambiguous-target', 'method-override',
    'destination-is-source', 'destination-elsewhere', 'no-route', 'lease-target-missing', 'lease-access', 'method-not-allowed',
    'header-timeout', 'body-timeout', 'body-too-large', 'target-too-long', 'unsupported-media-type',
    'header-too-large', 'not-supported', 'loop-detected',
  ],
} as const;

type ClassName = keyof typeof CODES;

/** The code of a refusal of ifmatch. */
export type Code = (typeof CODES)[ClassName][number];

/** A refusal of ifmatch, as it stands in the body of the answer (RFC 9457). */
export interface Problem {
  readonly type?: string;
  readonly title?: string;
  readonly status: number;
  readonly detail?: string;
  readonly code?: Code;
  readonly holder?: string;
  readonly retry_after?: number;
  readonly in_doubt?: boolean;
}

/** The base of all errors of this package. */
export class IfmatchError extends Error {
  override name = 'IfmatchError';
}

/** What Node.js reports where it could not connect. Pages do not learn this. */
const UNCONNECTED: readonly unknown[] = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];

/** No whole answer came: the connection broke, nothing listens at the address, or the time was over. */
export class Unreachable extends IfmatchError {
  override name = 'Unreachable';
  /** Whether the request may have reached the server: false where no connection could be made, as far as `fetch` tells. */
  readonly wasSent: boolean;

  /** @param request the method and the URL */
  constructor(request: string, cause: unknown) {
    super(`${request}: no answer: ${causes(cause)}`, { cause });
    const { code } = (cause as { cause?: { code?: unknown } } | undefined)?.cause ?? {};
    this.wasSent = !UNCONNECTED.includes(code);
  }
}

/** An answer that is no success, of ifmatch (then it has a `code`) or of the backend. */
export class Refused extends IfmatchError {
  override name = 'Refused';
  readonly status: number;
  readonly code: Code | undefined;
  /** The remedy, or the text of the backend. */
  readonly detail: string;
  /** The label of the client that holds the lease. */
  readonly holder: string | undefined;
  /** How long to wait before another attempt, in milliseconds, where the answer says so. */
  readonly retryAfterMs: number | undefined;
  /** The write was sent to the backend, and its outcome is unknown. */
  readonly isInDoubt: boolean;

  /** @param request the method and the URL */
  constructor(request: string, readonly problem: Problem) {
    const { status, code, detail = problem.title ?? '', holder, retry_after } = problem;
    const by = holder === undefined ? '' : ` (held by ${holder})`;
    super(`${request}: ${[status, code].filter(Boolean).join(' ')}${by}${detail && `: ${detail}`}`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.holder = holder;
    this.retryAfterMs = retry_after === undefined ? undefined : 1000 * retry_after;
    this.isInDoubt = problem.in_doubt ?? false;
  }
}

/** 412: another change came first. */
export class PreconditionFailed extends Refused {
  override name = 'PreconditionFailed';
}

/** 428: the write does not name the version that it is based on. */
export class PreconditionRequired extends Refused {
  override name = 'PreconditionRequired';
}

/** Another client holds the lease of the resource; `holder` is its label. */
export class LeaseHeld extends Refused {
  override name = 'LeaseHeld';
}

/** The `Lease-Id` of the request is not, or soon no longer, the id of a lease of the resource. */
export class LeaseEnded extends Refused {
  override name = 'LeaseEnded';
}

/** Another request on the resource has not ended. Nothing was written. */
export class Busy extends Refused {
  override name = 'Busy';
}

/** The `Idempotency-Key` is missing, or belongs to another write or to one with an unknown outcome. */
export class KeyRefused extends Refused {
  override name = 'KeyRefused';
}

/** The backend gave ifmatch no usable answer. `isInDoubt` tells whether the write may have been applied. */
export class UpstreamFailed extends Refused {
  override name = 'UpstreamFailed';
}

/** A limit was reached, or ifmatch cannot learn what it needs. Nothing was written. */
export class Unavailable extends Refused {
  override name = 'Unavailable';
}

/** The request is wrong, or this client may not send it. */
export class BadRequest extends Refused {
  override name = 'BadRequest';
}

/** Each attempt has failed. `last` is the error of the last one. */
export class GaveUp extends IfmatchError {
  override name = 'GaveUp';

  constructor(what: string, readonly last: IfmatchError) {
    super(`gave up ${what}; the last error was: ${last.message}`, { cause: last });
  }
}

/** The answer to a write was lost, and it cannot be known whether the change was made. */
export class OutcomeUnknown extends IfmatchError {
  override name = 'OutcomeUnknown';

  /** @param last why the outcome is not known */
  constructor(request: string, readonly last: IfmatchError) {
    super(`${request}: it is not known whether the change was made; the last error was: ${last.message}`, { cause: last });
  }
}

/** Why a lease is held no more: a reason of the stream (docs/lease-streams.md), or the code of a refusal. */
export type LossReason =
  | 'broken' | 'expired' | 'released' | 'ended' | 'taken-up' | 'unknown' | 'denied' | Code | `${number}`;

/** The client holds its lease no more. */
export class LeaseLost extends IfmatchError {
  override name = 'LeaseLost';

  constructor(url: string, readonly reason: LossReason, readonly last?: IfmatchError) {
    const because = last === undefined ? '' : `; the last error was: ${last.message}`;
    super(`the lease of ${url} is lost: ${reason}${because}`, { cause: last });
  }
}

const CLASSES: Record<ClassName, typeof Refused> = {
  PreconditionFailed, PreconditionRequired, LeaseHeld, LeaseEnded, Busy, KeyRefused, UpstreamFailed, Unavailable,
  BadRequest,
};

const CLASS_OF = new Map<string, typeof Refused>(
  Object.entries(CODES).flatMap(([name, codes]) => codes.map(code => [code, CLASSES[name as ClassName]] as const)),
);

/** The error for a refusal, of the class of its code. */
export function refused(request: string, problem: Problem): Refused {
  // A backend may judge preconditions itself, and knows no codes.
  const unnamed = problem.status === 412 ? PreconditionFailed : problem.status === 428 ? PreconditionRequired : Refused;
  return new (CLASS_OF.get(problem.code ?? '') ?? unnamed)(request, problem);
}

/** The message of an error, and those of the errors that caused it: `fetch` hides the reason in its cause. */
function causes(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error.cause === undefined ? '' : `: ${causes(error.cause)}`;
  return `${error.message || error.name}${inner}`;
}
