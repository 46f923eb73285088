export {
  BadRequest, Busy, GaveUp, IfmatchError, KeyRefused, LeaseEnded, LeaseHeld, LeaseLost, OutcomeUnknown, PreconditionFailed,
  PreconditionRequired, Refused, Unavailable, Unreachable, UpstreamFailed, type Code, type LossReason, type Problem,
} from './errors.js';
export { guardedFetch, Conflict, type GuardedFetch, type GuardedFetchOptions, type GuardedInit, type Versions } from './guarded-fetch.js';
export type { Connection } from './http.js';
export { Lease, type LeaseOptions } from './lease.js';
export { json, text, update, type Format, type Updated, type UpdateOptions } from './update.js';
export { watch, type LeaseState, type WatchEvent, type WatchOptions } from './watch.js';
